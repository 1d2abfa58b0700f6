#!/usr/bin/env python3
"""Bytes, operations and predicted times of the service's kernels: the tables of PERFORMANCE.md.

    patternd-frame-work > work.json
    performance_model.py work.json [--counters ncu.csv]
    performance_model.py --metrics

work.json says what one frame gives the kernels to do (how many positions, planes, pixels). The
functions below say what each unit of that costs, counted from the kernels' source. ncu.csv is what
the profiler counted on a GPU (ncu --csv with METRICS below), and is set beside the counts. A model:
where no counter stands beside a number, nobody has measured it.
"""
import argparse
import csv
import json
import re
import statistics
import sys
from dataclasses import dataclass

METRICS = ("dram__bytes_read.sum,dram__bytes_write.sum,smsp__inst_executed.sum,"
           "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum,"
           "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum,"
           "smsp__sass_thread_inst_executed_op_integer_pred_on.sum,gpu__time_duration.sum")


@dataclass
class Gpu:
    name: str
    multiprocessors: int
    cores: int  # single-precision units of a multiprocessor
    doubles: int  # double-precision results a clock and multiprocessor
    texels: int  # texture lookups a clock and multiprocessor
    mhz: float
    gb_s: float  # that a copy kernel reaches, read and write
    launch_us: float
    issue: float  # share of the units that four schedulers keep busy


# Bandwidth: K1's is the thesis's copy kernel; the others' are their memory's rate times what the
# thesis found K1's copy to reach of its own (11.7 of 17 GB/s). Units and clocks: NVIDIA's data
# sheets and the CUDA programming guide's table of throughputs. Launches: 10 us each without graphs,
# 3 us from a graph.
COPY_SHARE = 11.7 / 17
GPUS = [
    Gpu("Tegra K1, 852 MHz", 1, 192, 8, 8, 852, 11.7, 10, 0.6),
    Gpu("Tegra K1, 950 MHz", 1, 192, 8, 8, 950, 11.7, 10, 0.6),
    Gpu("Nano", 1, 128, 4, 8, 921, 25.6 * COPY_SHARE, 10, 0.8),
    Gpu("Orin Nano", 8, 128, 2, 4, 625, 68 * COPY_SHARE, 3, 0.8),
    Gpu("AGX Orin", 16, 128, 2, 4, 1300, 204.8 * COPY_SHARE, 3, 0.8),
    Gpu("Thor", 20, 128, 2, 4, 1575, 273 * COPY_SHARE, 3, 0.8),
]


@dataclass
class Work:
    """What a kernel does for one frame, all its launches together."""
    kernel: str
    read: float  # bytes from memory, each picture and table once
    written: float  # bytes to memory
    instructions: float = 0  # of threads
    double: float = 0  # those of them in double precision
    lookups: float = 0  # in textures
    launches: int = 1
    formula: str = ""


# Instructions a pixel of rectify.cu: the row and its position 6; rounding, weights and texel 13; the
# lookup 1; interpolation 6; scale, rounding and storing 6. For each column of a warp's rows 70 more:
# on small GPUs a warp takes 32 rows.
RECTIFY_INSTRUCTIONS = 6 + 13 + 1 + 6 + 6
RECTIFY_COLUMN_INSTRUCTIONS = 70
RECTIFY_ROWS = 32
# pyramid.cu, for each pixel written: 4 loads, 4 sums, a shift, bounds and addresses 16.
HALVE_INSTRUCTIONS = 25


def rectify(work, pixel_bytes):
    r = work["rectification"]
    pixels = r["width"] * r["height"]
    return Work(f"rectify, {8 * pixel_bytes} bit",
                pixels * pixel_bytes * r["share_read"] + r["patches"] * r["patch_bytes"],
                pixels * pixel_bytes,
                (RECTIFY_INSTRUCTIONS + RECTIFY_COLUMN_INSTRUCTIONS / RECTIFY_ROWS) * pixels, 0,
                pixels,
                formula="reads W·H·s·share + 96 a patch, writes W·H·s; 34 and a lookup a pixel")


def pyramid(work):
    r = work["rectification"]
    pixels = r["width"] * r["height"]
    written = sum(pixels / 4 ** level for level in range(1, work["top_level"] + 1))
    return Work("pyramid", pixels, written, HALVE_INSTRUCTIONS * written,
                launches=max(1, -(-work["top_level"] // 6)),
                formula="reads W·H, writes W·H·(1/4 + 1/16 + …); 25 a pixel written")


# coarse_search.cu: prepare 40 a pixel of the level (two running sums over a warp); bound 25 a run, counted,
# and position of a group; search a fused multiply-add a pixel of the template and position, a fifth
# more for rounded rows and spans, and of all that a quarter more for loads and the list; judge
# works on what the bounds leave, which depends on the picture: as the profiler counted in the frame of tests/gpu/figures.cpp.
PREPARE_INSTRUCTIONS = 40
RUN_INSTRUCTIONS = 25
SEARCH_OVERHEAD = 1.2 * 1.25
JUDGE_INSTRUCTIONS = 6.7


def coarse(work):
    c = work["coarse"]
    pixels = work["coarse_width"] * work["coarse_height"]
    yield Work("coarse_prepare", pixels, 12 * pixels, PREPARE_INSTRUCTIONS * pixels,
               formula="reads 1 byte, writes 12; 40 a pixel of the level")
    yield Work("coarse_bound", 8 * pixels, 8 * c["positions"] * c["groups"],
               RUN_INSTRUCTIONS * c["runs_of_groups"] * c["positions"],
               formula="writes 8 a position and group; 25 a run and position, as counted")
    yield Work("coarse_search", 4 * pixels + 4 * c["pixels_of_planes"] +
               8 * c["positions"] * c["groups"], 0,
               SEARCH_OVERHEAD * c["multiply_adds"],
               formula="1.5 a position and pixel of all planes")
    yield Work("coarse_judge", 8 * pixels, 0,
               JUDGE_INSTRUCTIONS * c["positions"] * c["planes"],
               formula="6.7 a position and plane, as counted")


# A sample of the picture in a pattern's frame: position 8, weights and texel 10, interpolation 7;
# with the products of a regression (8 regressors) 30 more, of a score 10 more; a cubic sample takes
# four lookups and 50 more. A pass also costs each of the block's threads the pose's arithmetic.
REGRESS_INSTRUCTIONS = 55
SCORE_INSTRUCTIONS = 35
CUBIC_INSTRUCTIONS = 50
PASS_INSTRUCTIONS = 300
PASS_DOUBLES = 40
POSE_THREADS = 384
PASSES = 3  # regressions until a pose stands still, at most in a step of the trace


def pose_work(name, candidates, samples, passes, sample_instructions, lookups, formula):
    threads = candidates * POSE_THREADS * passes
    return Work(name, 16 * samples + candidates * samples, 0,
                candidates * samples * sample_instructions + threads * PASS_INSTRUCTIONS,
                threads * PASS_DOUBLES, candidates * samples * lookups, formula=formula)


def poses(work):
    steps = [step for step in work["steps"] if step["traced"]]
    if steps:
        first = steps[0]["width"] * steps[0]["height"]
        yield pose_work("trace_glance", work["most_coarse"], first, 1, SCORE_INSTRUCTIONS, 1,
                        "35 and a lookup a candidate and pixel")
    for step in steps:
        yield pose_work(f"trace_step, level {step['level']}", step["most_kept"],
                        step["width"] * step["height"], PASSES + 1,
                        PASSES * REGRESS_INSTRUCTIONS + SCORE_INSTRUCTIONS, PASSES + 1,
                        "200 and 4 lookups a candidate and pixel")
    last = work["steps"][-1]
    yield pose_work("refine", last["most_kept"], last["width"] * last["height"], PASSES + 1,
                    PASSES * (REGRESS_INSTRUCTIONS + CUBIC_INSTRUCTIONS) + SCORE_INSTRUCTIONS,
                    4 * PASSES + 1, "350 and 13 lookups a candidate and pixel")


# Suppression and the choice of what is followed and kept: short lists, so their launches alone.
LIST_LAUNCHES = 8


def frame(work):
    lists = Work("suppression, choices", 0, 0, launches=LIST_LAUNCHES, formula="8 launches")
    return [rectify(work, 1), pyramid(work), *coarse(work), *poses(work), lists]


# ---- Times ------------------------------------------------------------------------------------
def times_ms(work, gpu):
    """Memory, instructions, lookups, double precision: each alone."""
    clocks = gpu.mhz * 1e3 * gpu.multiprocessors  # a millisecond
    return ((work.read + work.written) / gpu.gb_s * 1e-6,
            work.instructions / (clocks * gpu.cores * gpu.issue),
            work.lookups / (clocks * gpu.texels), work.double / (clocks * gpu.doubles))


def best_ms(work, gpu):
    """All four at the same time."""
    return max(times_ms(work, gpu)) + work.launches * gpu.launch_us * 1e-3


def worst_ms(work, gpu):
    """One after the other."""
    return sum(times_ms(work, gpu)) + work.launches * gpu.launch_us * 1e-3


# ---- The profiler's counters --------------------------------------------------------------------
def counters_of(path):
    """Kernel name -> metric -> median over its launches."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    by_kernel = {}
    for row in csv.DictReader(lines):
        name = re.sub(r"\(.*", "", row.get("Kernel Name", "")).replace("patternd_", "")
        value = row.get("Metric Value", "").replace(",", "")
        if name and re.fullmatch(r"[0-9.eE+-]+", value):
            by_kernel.setdefault(name, {}).setdefault(row["Metric Name"], []).append(float(value))
    return {name: {metric: statistics.median(values) for metric, values in metrics.items()}
            for name, metrics in by_kernel.items()}


COUNTED_AS = {"rectify, 8 bit": "rectify_gray8", "rectify, 32 bit": "rectify_gray_f32",
              "pyramid": "pyramid_halve_gray8"}


def print_counters(works, counters):
    print("| kernel | bytes read, counted | from DRAM | instructions, counted | executed | double, "
          "counted | executed | us |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for work in works:
        seen = counters.get(COUNTED_AS.get(work.kernel, work.kernel.split(",")[0]))
        if seen is None:
            continue
        executed = 32 * seen["smsp__inst_executed.sum"]
        double = seen["smsp__sass_thread_inst_executed_op_fp64_pred_on.sum"]
        print(f"| {work.kernel} | {work.read:.3g} | {seen['dram__bytes_read.sum']:.3g} | "
              f"{work.instructions:.3g} | {executed:.3g} | {work.double:.3g} | {double:.3g} | "
              f"{seen['gpu__time_duration.sum'] / 1e3:.1f} |")


def print_kernels(works):
    print("| kernel | bytes read | written | instructions | double | lookups | formula |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for work in works:
        print(f"| {work.kernel} | {work.read:.3g} | {work.written:.3g} | {work.instructions:.3g} | "
              f"{work.double:.3g} | {work.lookups:.3g} | {work.formula} |")


def print_times(works, title):
    print(f"| {title} | " + " | ".join(gpu.name for gpu in GPUS) + " |")
    print("| --- |" + " --- |" * len(GPUS))
    for work in works:
        cells = [f"{best_ms(work, gpu):.2f} – {worst_ms(work, gpu):.2f}" for gpu in GPUS]
        print(f"| {work.kernel} | " + " | ".join(cells) + " |")


def print_frame(works):
    cells = []
    for gpu in GPUS:
        best = sum(best_ms(work, gpu) for work in works)
        worst = sum(worst_ms(work, gpu) for work in works)
        cells.append(f"{best:.1f} – {worst:.1f}")
    print("| whole frame | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", nargs="?", help="what patternd-frame-work printed")
    parser.add_argument("--counters", help="what ncu --csv printed")
    parser.add_argument("--metrics", action="store_true", help="print what ncu has to count, and end")
    arguments = parser.parse_args()
    if arguments.metrics:
        print(METRICS)
        return 0
    if arguments.work is None:
        parser.error("which work.json? patternd-frame-work prints it")
    with open(arguments.work, encoding="utf-8") as file:
        work = json.load(file)
    works = frame(work)
    all_works = [rectify(work, 4), *works]
    print_kernels(all_works)
    print()
    if arguments.counters:
        print_counters(all_works, counters_of(arguments.counters))
        print()
    print_times(all_works, "ms")
    print_frame(works)
    return 0


if __name__ == "__main__":
    sys.exit(main())
