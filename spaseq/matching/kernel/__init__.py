"""Runs by compiled tables over whole batches: the eager NFA_scep as Numba kernels on arrays.

One event, walked through
-------------------------

The query is ``SEQ(A ; B)`` with ``?k`` in both, in a window of ten ticks. So far there was an A with
``?k`` = 7 at tick 1, and one with 8 at tick 2. Now a B with ``?k`` = 7 comes, at tick 4.

What the query says stands in ``t``, the tables, and never changes: the *gates* out of each place of the
automaton (an operator and what comes next), the *candidates* at a gate (a GPM, what it binds, what it
must meet), the actions of Kleenes and negations, conditions as programs. What there is of runs stands
in ``m``, one array of integers, in which references are places, and 0 is none; ``f`` are floats, for
sums. The batch is ``b``: columns of events and, for each GPM, columns of its rows, which ``gpm`` has
found before. What each record of these has is named in ``records``, in a class for each:
``waits.node(m, w)`` reads what leads from w1 to n1 in the drawing, ``gates.candidates(t, gate)`` where the
candidates at gate B begin. Before the B, there are in ``m``, behind counters and the places of its sections
(``records.header``)::

    waits                            nodes                      buckets           partitions
    ┌────────────────────────────┐                                                ┌────┐
    │ w0  the empty run          │                                                │ p0 │ no waits
    ├────────────────────────────┤   ┌───────────────────┐    ┌──────────────┐    └────┘
    │ w1  at gate B,  k = 7  node┼──▶│ n1  event 0, an A │    │ B, p0, k = 7 ├──▶ w1
    ├────────────────────────────┤   ├───────────────────┤    ├──────────────┤
    │ w2  at gate B,  k = 8  node┼──▶│ n2  event 1, an A │    │ B, p0, k = 8 ├──▶ w2
    └────────────────────────────┘   └───────────────────┘    └──────────────┘

A *wait* is a run in front of a gate, with the term ids that conditions and joins read. One before ``,``
hangs on its partition, where each event looks at it: if that does not match, the run is over. One
before ``;`` or ``:`` lies in the *bucket* of its gate, partition and join key, so that an event finds
those that it joins with, and touches no others. A *node* is the newest event of a run; it leads back to
the one before, which several runs may share.

1. ``_kernel.run`` takes the event: first, matches are found whose window has ended by now
   (``_kernel_end.end_due``). Then come the keys of the event, and for each the partition. What negations
   and ``&`` look back at is kept as an *entry* (``_kernel_gaps.remember``).
2. ``_kernel_decide.decide`` changes no run. It tries what may begin a run: gate A, for which the event
   has no row. It shows the event to the waits of the partition: there are none. Then it goes to the
   gates that rows of B wake: at gate B, the key of the row leads to the bucket (B, p0, k = 7), and w1
   is the only wait in it. What is left to be asked, conditions between A and B, ``_kernel_judge.judge``
   computes on the slots of w1: they hold. So it notes two things, *w1 goes on as B with this row*, and,
   as ``;`` takes the next B only, *w1 takes no other*. Where tables cannot say whether they hold, the
   kernel stops, has that answered outside (``exact``), and takes the event again with the answers.
3. ``_kernel_apply.apply`` carries out what was noted, once there is room for all of it; otherwise the
   kernel stops, and goes on when ``memory`` has made some. The B becomes n3, in front of n1. It may be
   the last of a match, so the run is a *finding*: its node, and how it ended. Were there gates behind it, a
   new wait would lie at each, a copy of w1 that knows B's values, too. Then w1 is taken out of its
   bucket, and its place is free for the next wait. Of several streams it would stay until time goes on,
   since events of one time are in no order.

Nobody has looked at w2. At the end of the batch ``unroll`` follows the nodes of what was found, from
back to front, and ``matches`` makes blocks of the positions, candidates and rows. When memory is full,
``sweep`` moves what is still within the window to a new one: until then, a run that is over lies where
it is.
"""
