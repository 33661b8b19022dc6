"""The eager NFA_scep as Numba kernels: tables of a query, and runs in arrays, over whole batches.

Open ``matcher`` first. ``tables`` compiles a query, ``compiled`` has the loops, ``records`` the fields.

One event, step by step -----------------------

The query is ``SEQ(A ; B)`` with ``?k`` in both, in a window of ten ticks. So far there was an A with ``?k`` =
7 at tick 1, and one with 8 at tick 2. Now a B with ``?k`` = 7 arrives, at tick 4.

- ``t``, the tables, is the query; it never changes. It has the *gates* out of each place of the automaton (an
  operator and the next elements), the *candidates* at a gate (a GPM, what it binds, its conditions), the
  actions of Kleenes and negations, and conditions as programs.
- ``m`` is the runs: one array of integers. A reference is an offset into it, and 0 is none. ``f`` has floats,
  for sums.
- ``b`` is the batch: columns of events and, for each GPM, columns of the solutions found before.

``records`` has a class for each kind of record: ``waits.node(m, w)`` reads the link from w1 to n1 in the
drawing, and ``gates.candidates(t, gate)`` reads where the candidates at gate B begin. Before the B arrives,
``m`` has these records behind its header (``records.header``)::

    waits                            nodes                      buckets           partitions
    ┌────────────────────────────┐                                                ┌────┐
    │ w0  the empty run          │                                                │ p0 │ no waits
    ├────────────────────────────┤   ┌───────────────────┐    ┌──────────────┐    └────┘
    │ w1  at gate B,  k = 7  node┼──▶│ n1  event 0, an A │    │ B, p0, k = 7 ├──▶ w1
    ├────────────────────────────┤   ├───────────────────┤    ├──────────────┤
    │ w2  at gate B,  k = 8  node┼──▶│ n2  event 1, an A │    │ B, p0, k = 8 ├──▶ w2
    └────────────────────────────┘   └───────────────────┘    └──────────────┘

A *wait* is a run at a gate, with the term ids that conditions and joins read. A wait before ``,`` is listed
at its partition, and each event tests it: an event that does not match ends the run. A wait before ``;`` or
``:`` is in the *bucket* of its gate, partition and join key, so that an event finds only the waits that it
joins with. A *node* is the newest event of a run. It links to the node of the event before, which several
runs may share.

1. ``_kernel.run`` takes the event. It first finds the matches with a window that has ended by now
   (``_kernel_apply.end_due``). Then it reads the keys of the event, and finds the partition of each. The
   solutions that negations and ``&`` look back at are stored as an *entry* (``_kernel_gaps.remember``).
2. ``_kernel_decide.decide`` changes no run. It tries to begin a run: at gate A, the event has no row. It
   tests the waits of the partition: there are none. Then it visits the gates that rows of B can pass: at
   gate B, the key of the row leads to the bucket (B, p0, k = 7), and w1 is the only wait in it.
   ``_kernel_judge.judge`` computes the remaining conditions, those between A and B, on the slots of w1:
   they hold. So ``decide`` notes two things: *w1 continues as B with this row*, and, since ``;`` takes the
   next B only, *w1 takes no other*. If the tables cannot decide a condition, the kernel stops, ``exact``
   decides it in Python, and the kernel takes the event again with the answers.
3. ``_kernel_apply.apply`` carries out the notes, once there is room for all of them. Otherwise the kernel
   stops, and continues when ``memory`` has made room. The B becomes n3, linked to n1. It can be the last
   event of a match, so the run is a *finding*: its node, and how it ended. If there were gates after B, each
   would get a new wait: a copy of w1 with the values of B. Then w1 is taken out of its bucket, and its space
   is free for the next wait. With several streams, w1 would stay until time advances, since events of one
   time are in no order.

No step read w2. At the end of the batch, ``unroll`` follows the nodes of the findings from back to front, and
``matches`` makes blocks of the positions, candidates and rows. When memory is full, ``sweep`` moves the runs
that are still within the window to a new array. Until then, expired runs stay where they are.
"""
