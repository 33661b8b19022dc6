"""GPMs that match nothing: how many events they saw, and what no event had."""

from __future__ import annotations

import spaseq
from tests.why.streams import NS, query, why

PRICES = [(1, ":x :price 10"), (2, ":x :price 20"), (3, ":y :price 30 ; :volume 1")]


def test_counts_by_gpm() -> None:
    told = why(query("A , B", {"A": "?s :price ?p", "B": "?s ?q ?v"}), *PRICES)
    assert {name: (g.events, g.matched, g.rows) for name, g in told.gpms.items()} == {
        "A": (3, 3, 3),
        "B": (3, 3, 4),
    }
    assert (told.events, told.matches, told.cause) == (3, 1, "3 events, 1 match")


def test_counts_by_gpm_and_stream() -> None:
    events = [(1, ":x :a 1"), (2, "T::x :a 2"), (2, "T::x :b 2")]
    told = why(query("A ; B", {"A": "?s :a ?p", "B": "T:?s :c ?v"}), *events)
    assert {name: (g.events, g.matched, g.rows) for name, g in told.gpms.items()} == {
        "A": (1, 1, 1),
        "B": (2, 0, 0),
    }


def test_a_misspelt_predicate() -> None:
    told = why(query("A , B", {"A": "?s :price ?p", "B": "?s :prise ?v"}), *PRICES)
    assert told.cause == (
        "3 events, of which GPM B matched none: no event has predicate :prise; "
        "did you mean :price (3 events)?"
    )
    (item,) = told.missing
    assert (item.gpm, item.role, item.nearest, item.events) == ("B", "predicate", ":price", 3)


def test_a_predicate_of_another_namespace() -> None:
    told = why(query("A", {"A": "?s <https://example.org/price> ?p"}), *PRICES)
    assert "did you mean :price (3 events)?" in told.cause


def test_a_misspelt_class_and_a_value_of_another_kind() -> None:
    events = [(1, ":x a :Sensor ; :room 'kitchen'")]
    told = why(query("A , B", {"A": "?s a :Senser", "B": "?s a :Sensor"}), *events)
    assert "GPM A matched none: no event has class :Senser; did you mean :Sensor (1 event)?" in told.cause
    told = why(query("A , B", {"A": "?s a :Sensor", "B": "?s :room :kitchen"}), *events)
    assert told.cause.endswith('no event has value :kitchen of :room; did you mean "kitchen" (1 event)?')


def test_nothing_alike() -> None:
    told = why(query("A", {"A": "?s :temperature ?p"}), *PRICES)
    assert told.cause == (
        "3 events, of which GPM A matched none: no event has predicate :temperature; "
        "they have :price, :volume"
    )


def test_a_wrong_stream() -> None:
    text = query("A ; B", {"A": "?s :price ?p", "B": "T:?s :price ?v"})
    assert why(text, *PRICES).cause == "3 events, of which GPM B matched none: no event of stream T came"
    told = why(text, *PRICES, (4, "T::x :volume 1"))
    assert told.cause == (
        "4 events, of which GPM B matched none: no event has predicate :price, "
        "but those of stream S have: is it ON the wrong stream?"
    )


def test_triples_that_are_not_in_one_event() -> None:
    events = [(1, ":x :price 1"), (2, ":x :volume 2")]
    told = why(query("A", {"A": "?s :price ?p ; :volume ?v"}), *events)
    assert told.missing == ()
    assert told.cause.endswith("no event has ?s <http://example.org/volume> ?v . besides what is before it")


def test_a_background_graph_without_the_answer() -> None:
    text = query("A", {"A": "?s :price ?p . GRAPH <urn:kb> { ?s :sector ?k }"})
    told = why(text, *PRICES, knowledge={"urn:kb": "<urn:z> <http://example.org/sector> 1 ."})
    assert told.cause.endswith("its events have no solution in common with the background graphs")


def test_what_a_sequence_can_do_without_is_not_to_blame() -> None:
    gpms = {"A": "?s :price 10", "B": "?s :none ?v", "N": "?s :nothing ?o"}
    text = query("(A | N) , B , N? , !N", gpms, "10 SECONDS SLIDING")
    told = why(text, *PRICES)
    assert "GPM B matched none" in told.cause
    told = why(query("M | N", {"M": "?s :prise 10", "N": "?s :nothing ?o"}), *PRICES)
    assert "GPM M matched none: no event has predicate :prise; did you mean :price" in told.cause


def test_paths_need_their_steps() -> None:
    told = why(query("A", {"A": "?s :price/:prise? ?p ; ^:volum ?q"}), *PRICES)
    assert [(item.term, item.nearest) for item in told.missing] == [(":volum", ":volume")]


def test_no_event() -> None:
    assert why(query("A", {"A": "?s :price ?p"})).cause == "no event came"


def test_filters_of_one_event() -> None:
    text = query("A", {"A": "?s :price ?p . FILTER(?p > 100) FILTER(?p < 25)"})
    told = why(text, *PRICES)
    assert [(f.text, f.held, f.failed, f.erred) for f in told.filters] == [
        ("?p > 100", 0, 3, 0),
        ("?p < 25", 2, 1, 0),
    ]
    assert told.cause.endswith("GPM A matched none: FILTER(?p > 100) failed 3 times")


def test_a_filter_that_errs() -> None:
    text = query("A", {"A": "?s :price ?p . FILTER(?p > 'x')"})
    told = why(text, *PRICES)
    (item,) = told.filters
    assert (item.held, item.failed, item.erred) == (0, 0, 3)
    assert item.error is not None
    assert told.cause.endswith(f'FILTER(?p > "x") erred 3 times: {item.error}')


def test_optionals_and_unions_and_the_filters_inside() -> None:
    pattern = """?s :price ?p . OPTIONAL { ?s :volume ?v . FILTER(?v > ?p) }
        { ?s :price 10 } UNION { ?s :price ?q . FILTER(?q > 25) FILTER(?p > 0) }"""
    told = why(query("A", {"A": pattern}), *PRICES)
    assert [(b.kind, b.text, b.events, b.rows) for b in told.branches] == [
        ("OPTIONAL", f"{{ ?s <{NS}volume> ?v . FILTER(?v > ?p) }}", 0, 0),
        ("UNION", f"{{ ?s <{NS}price> 10 . }}", 1, 1),
        ("UNION", f"{{ ?s <{NS}price> ?q . FILTER(?q > 25) FILTER(?p > 0) }}", 0, 0),
    ]
    # ?v is 1, ?p 30 there; inside of a UNION ?p is not bound.
    assert [(f.text, f.held, f.failed, f.erred) for f in told.filters] == [
        ("?v > ?p", 0, 1, 0),
        ("?q > 25", 1, 2, 0),
        ("?p > 0", 0, 0, 3),
    ]
    assert f"    GPM A: UNION {{ ?s <{NS}price> 10 . }} in 1 event, 1 solution" in str(told).splitlines()


def test_a_filter_of_an_optional_is_no_reason() -> None:
    text = query("A", {"A": "?s :price ?p ; :volume ?v . OPTIONAL { ?s :price ?q . FILTER(?q > 99) }"})
    told = why(text, *PRICES[:2], (3, ":x :volume 1"))
    assert [(f.held, f.failed) for f in told.filters] == [(0, 0)]
    assert told.cause.endswith("no event has ?s <http://example.org/volume> ?v . besides what is before it")


def test_a_query_that_met_a_limit_has_its_counts_only() -> None:
    with spaseq.Engine(limits=spaseq.Limits(partial_matches=1), matcher="interpreter") as engine:
        handle = engine.register(query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q"}))
        for time in range(9):
            engine.push(f"{NS}s", f"<urn:{time}> <{NS}a> 1 .", time)
    assert handle.error is not None
    told = handle.why()
    assert told.cause.endswith("the query ended early: nothing of it is kept to look at")
    assert (told.gpms["B"].matched, told.sampled, told.states, told.trials) == (0, 0, (), ())
