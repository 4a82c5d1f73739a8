"""Sweeps: medians with their spread, models beside them, published values under them."""

import numpy as np
import pytest

from mpilab.algorithms import schedule_of
from mpilab.errors import InputError
from mpilab.measure import sweep_table
from mpilab.measure.dataset import published_allgather
from mpilab.measure.sweep_table import ROW
from mpilab.models import Hockney, cost, predict, predict_schedule
from mpilab.plots import style, sweep

MODEL = Hockney(2e-6, 2e-10)
FACTORS = (0.5, 0.8, 1.0, 1.5, 4.0)


def table(algorithms=("ring", "bruck"), rank_counts=(4,), sizes=(32, 1024, 32768)):
    rows = []
    for algorithm in algorithms:
        for ranks in rank_counts:
            for size in sizes:
                seconds = predict(algorithm, ranks, size, MODEL) or 1e-7
                for repetition, factor in enumerate(FACTORS):
                    span = seconds * factor
                    rows.append(
                        (
                            "allgather",
                            "ours",
                            algorithm,
                            -1,
                            ranks,
                            size,
                            0,
                            0,
                            0,
                            0,
                            "",
                            repetition,
                            span,
                            span / 2,
                            span,
                            span / 4,
                        )
                    )
    return np.array(rows, dtype=ROW)


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_each_algorithm_is_one_line_of_medians_with_quartiles_as_bars():
    (ring,) = named(sweep.time_against_size(table()), "ring")
    expected = predict("ring", 4, np.array([32, 1024, 32768]), MODEL)
    assert np.allclose(ring.y, expected)
    assert np.allclose(ring.error_y.array, 0.5 * expected)
    assert np.allclose(ring.error_y.arrayminus, 0.2 * expected)


def test_both_axes_are_logarithmic_with_units():
    layout = sweep.time_against_size(table()).layout
    assert layout.xaxis.type == layout.yaxis.type == "log"
    assert layout.xaxis.title.text == "bytes of a rank's block"
    assert "seconds" in layout.yaxis.title.text
    assert layout.xaxis.ticktext[0] == "32 B"


def test_a_time_axis_is_labeled_at_1_2_5_over_few_decades_and_at_tens_over_many():
    few = sweep.time_against_size(table()).layout.yaxis
    assert {"2 µs", "5 µs", "10 µs"} <= set(few.ticktext)
    assert few.tickvals[few.ticktext.index("5 µs")] == 5e-6
    many = sweep.time_against_size(table(sizes=(32, 1 << 30))).layout.yaxis
    assert {"10 µs", "100 µs", "1 s"} <= set(many.ticktext) and "5 µs" not in many.ticktext


def test_every_number_of_ranks_has_its_panel_and_every_algorithm_one_legend_entry():
    figure = sweep.time_against_size(table(rank_counts=(2, 4, 8)))
    panels = [note.text for note in figure.layout.annotations]
    assert panels == ["2 ranks", "4 ranks", "8 ranks"]
    assert [trace.showlegend for trace in named(figure, "ring")] == [True, False, False]


def test_a_missing_combination_leaves_a_gap_and_its_legend_entry_moves_on():
    rows = np.concatenate([table(("ring",), (2,)), table(("ring", "bruck"), (4,))])
    (bruck,) = named(sweep.time_against_size(rows), "bruck")
    assert bruck.xaxis == "x2" and bruck.showlegend


def test_model_curves_are_dashed_in_the_color_of_their_algorithm():
    figure = sweep.time_against_size(table(), models=MODEL)
    (line,) = named(figure, "ring, model")
    assert line.line.dash == "dash"
    assert line.line.color == named(figure, "ring")[0].line.color == style.color("ring")
    assert line.y[-1] == pytest.approx(predict("ring", 4, 32768, MODEL))


def test_models_may_be_given_for_some_algorithms_only():
    figure = sweep.time_against_size(table(), models={"ring": MODEL})
    assert named(figure, "ring, model") and not named(figure, "bruck, model")


def test_an_algorithm_without_a_schedule_is_drawn_without_a_model_curve():
    rows = table()
    rows["algorithm"][rows["algorithm"] == "bruck"] = "MPI_Allgather"
    figure = sweep.time_against_size(rows, models=MODEL)
    assert named(figure, "MPI_Allgather") and not named(figure, "MPI_Allgather, model")


def test_the_mean_over_the_ranks_can_be_plotted_in_place_of_the_span():
    span = named(sweep.time_against_size(table()), "ring")[0].y
    mean = named(sweep.time_against_size(table(), measure="mean_s"), "ring")[0].y
    assert np.allclose(mean, span / 2)


def test_the_text_alternative_ranks_the_algorithms_at_each_size():
    text = style.alt(sweep.time_against_size(table(), models=MODEL)).splitlines()
    assert text[0].endswith("2 algorithms, 4 ranks, 32 B to 32 KiB.")
    assert text[1] == (
        "4 ranks, 32 B, medians from fastest to slowest: bruck 4.02 µs, ring 6.02 µs."
    )
    assert text[-1].startswith("Dashed: the α-β model with α = 2")


def rows(
    collective, library, algorithm, *, ranks=4, sizes=(64, 1024), seconds=1e-5, segment=0, fanout=0
):
    """Rows of a sweep: three repetitions of each size."""
    return np.array(
        [
            (
                collective,
                library,
                algorithm,
                -1,
                ranks,
                size,
                segment,
                fanout,
                0,
                0,
                "",
                repetition,
                seconds,
                seconds,
                seconds,
                seconds,
            )
            for size in sizes
            for repetition in range(3)
        ],
        ROW,
    )


def test_open_mpis_own_is_drawn_in_the_color_of_ours_with_open_markers():
    both = np.concatenate(
        [rows("bcast", "ours", "linear"), rows("bcast", "openmpi", "basic_linear")]
    )
    figure = sweep.time_against_size(both, models=MODEL)
    (ours,), (theirs,) = named(figure, "linear"), named(figure, "basic_linear (Open MPI)")
    assert ours.line.color == theirs.line.color == style.color("linear")
    assert (ours.marker.symbol, theirs.marker.symbol) == ("triangle-up", "triangle-up-open")
    curves = named(figure, "linear, model") + named(figure, "basic_linear (Open MPI), model")
    assert [curve.line.dash for curve in curves] == ["dash", "dot"]
    assert figure.layout.xaxis.title.text == "bytes of the message"


def test_the_model_of_a_collective_is_that_of_its_costs_and_of_its_schedule_on_few_cores():
    table = rows("bcast", "ours", "pipeline", segment=256, sizes=(1024, 65536))
    name = "pipeline (segment 256 B), model"
    (alone,) = named(sweep.time_against_size(table, models=MODEL), name)
    expected = cost("bcast", "pipeline", 4, 65536, MODEL, segment=256)
    assert alone.y[-1] == pytest.approx(expected)
    (shared,) = named(sweep.time_against_size(table, models=MODEL, cores=1), name)
    schedule = schedule_of("bcast", "pipeline", 4, count=65536, segment=256)
    assert shared.y[-1] == pytest.approx(predict_schedule(schedule, None, MODEL, 1))
    assert shared.y[-1] > alone.y[-1]


@pytest.mark.parametrize(("library", "algorithm"), [("openmpi", "default"), ("ours", "my_own")])
def test_what_has_no_formula_is_drawn_without_a_model(library, algorithm):
    figure = sweep.time_against_size(rows("reduce", library, algorithm), models=MODEL)
    assert not [trace.name for trace in figure.data if "model" in trace.name]


def test_each_way_to_tune_an_algorithm_is_a_line_of_its_own():
    table = np.concatenate(
        [rows("bcast", "ours", "chain", fanout=2, segment=s, seconds=1e-5 + s) for s in (0, 8192)]
    )
    figure = sweep.time_against_size(table)
    (plain,), (cut,) = (
        named(figure, f"chain ({words})") for words in ("fanout 2", "segment 8 KiB, fanout 2")
    )
    assert plain.line.color == cut.line.color and plain.line.dash != cut.line.dash
    assert (plain.y[0], cut.y[0]) == (1e-5, 1e-5 + 8192)


def test_of_several_collectives_each_line_names_its_own():
    table = np.concatenate([rows("gather", "ours", "linear"), rows("scatter", "ours", "linear")])
    figure = sweep.time_against_size(table)
    assert [trace.name for trace in figure.data] == ["gather linear", "scatter linear"]
    assert figure.layout.title.text == "Time against block size"


def test_a_barrier_is_drawn_over_the_ranks():
    table = np.concatenate(
        [
            rows("barrier", "ours", name, ranks=ranks, sizes=(0,), seconds=1e-6 * ranks * factor)
            for ranks in (2, 4, 8)
            for name, factor in (("tree", 1), ("linear", 2))
        ]
    )
    figure = sweep.time_against_size(table, models=MODEL)
    (tree,) = named(figure, "tree")
    assert tree.x.tolist() == [2, 4, 8]
    assert np.allclose(tree.y, [2e-6, 4e-6, 8e-6])
    assert figure.layout.xaxis.title.text == "ranks"
    assert named(figure, "tree, model")[0].x.tolist() == list(range(2, 9))
    text = style.alt(figure).splitlines()
    assert text[0] == "Time against the number of ranks: 2 algorithms, 2, 4 and 8 ranks."
    assert text[2] == "4 ranks, medians from fastest to slowest: tree 4 µs, linear 8 µs."


def test_a_figure_says_where_its_times_come_from_and_which_ranks_shared_cores():
    measured = table(rank_counts=(2, 4))
    measured["cores"], measured["machine"] = 2, "a processor"
    figure = sweep.time_against_size(measured)
    where = "easured on a processor, 2 cores, 2 and 4 ranks"
    title = f"Time against block size<br><sub>M{where} (4 oversubscribed)</sub>"
    assert figure.layout.title.text == title
    panels = [note.text for note in figure.layout.annotations]
    assert panels == ["2 ranks", "4 ranks, oversubscribed"]
    text = style.alt(figure).splitlines()
    assert text[1:3] == [f"Times m{where}.", "4 ranks: oversubscribed, more ranks than cores."]
    over = sweep.time_against_ranks(measured)
    assert over.layout.xaxis.ticktext == ("2", "4<br>oversubscribed")
    printed = sweep_table.text(sweep_table.summarize(measured))
    assert printed.count("4 oversubscribed") == 6 and "2 oversubscribed" not in printed
    names = {
        trace.name for trace in sweep.table_against_published(published_allgather(), measured).data
    }
    assert {"P = 2", "P = 4 (here oversubscribed)"} <= names
    measured["cores"], measured["machine"] = 0, "flat-1024x1"
    measured["ranks"] *= 256
    figure = sweep.time_against_size(measured)
    assert "Simulated on flat-1024x1, 512 and 1,024 ranks" in figure.layout.title.text
    assert [note.text for note in figure.layout.annotations] == ["512 ranks", "1,024 ranks"]


def test_time_against_ranks_has_a_panel_for_each_size():
    table = np.concatenate([rows("bcast", "ours", "binomial", ranks=ranks) for ranks in (2, 8)])
    figure = sweep.time_against_ranks(table, models={"binomial": MODEL})
    assert [note.text for note in figure.layout.annotations] == ["64 B", "1 KiB"]
    assert len(named(figure, "binomial")) == len(named(figure, "binomial, model")) == 2


def test_a_measured_table_is_laid_over_the_published_one_by_method_and_processes():
    published = published_allgather()
    rows = table(("nonblocking_gather_bcast", "pairwise"), (2, 4))
    figure = sweep.table_against_published(published, rows)
    assert [note.text for note in figure.layout.annotations] == [
        "nonblocking_gather_bcast",
        "pairwise",
    ]
    four = named(figure, "P = 4")
    assert [trace.line.dash for trace in four] == ["dot", None, "dot", None]
    assert len({trace.line.color for trace in four}) == 1
    assert [trace.showlegend for trace in four] == [True, False, False, False]
    assert four[0].y[0] == 2.22e-07
    assert len(named(figure, "P = 16")) == 2


def test_the_text_alternative_gives_the_ratio_where_both_tables_have_the_cell():
    rows = table(("pairwise",), (2,), sizes=(32,))
    text = style.alt(sweep.table_against_published(published_allgather(), rows)).splitlines()
    assert text[1:] == [
        "pairwise, P = 2, 32 B: measured 2.01 µs, published 303 ns, ratio 6.62.",
    ]


def test_tables_without_a_common_cell_say_so():
    rows = table(("ring",), (3,))
    assert ("no size and number of ranks in common") in style.alt(
        sweep.table_against_published(published_allgather(), rows)
    )


def test_an_empty_sweep_is_refused():
    with pytest.raises(InputError, match="run the sweep first"):
        sweep.time_against_size(np.array([], dtype=ROW))


def test_a_table_of_other_fields_is_refused_with_what_is_missing():
    with pytest.raises(InputError, match="mean_s, span_s"):
        sweep.time_against_size(
            np.zeros(1, dtype=[("algorithm", "U40"), ("ranks", "i4"), ("bytes", "i8")])
        )


def test_an_unknown_measure_is_refused():
    with pytest.raises(InputError, match="'span_s' or 'mean_s'"):
        sweep.time_against_size(table(), measure="max_s")
