#!/usr/bin/env python3
"""Bytes, operations and predicted times of the service's kernels: the tables of PERFORMANCE.md.

    patternd-frame-work > work.json
    PATTERND_TEST_DRIVER=.../libpatternd_emulated_driver.so PATTERND_EMULATED_COUNTS=launches.jsonl \\
        patternd_gpu_figures once
    performance_model.py work.json launches.jsonl [--counters ncu.csv]
    performance_model.py --metrics

work.json says what one frame gives the kernels to do (how many positions, planes, pixels);
launches.jsonl, a line a launch, what those did whose work depends on the picture: the kernels run on
the CPU, and lookups, multiply-adds, exchanges and barriers of all their threads are counted. The
functions below say what each unit of that costs, counted from the kernels' source and from what nvcc
made of it for sm_90. ncu.csv is what the profiler counted on a GPU (ncu --csv with METRICS below), and
is set beside the counts. A model: where no counter stands beside a number, nobody has measured it.
"""
import argparse
import csv
import json
import re
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
    byte_products: float = 0  # of matrix units, a clock and multiprocessor; 0: has none for bytes


# Bandwidth: K1's is the thesis's copy kernel; the others' are their memory's rate times what the
# thesis found K1's copy to reach of its own (11.7 of 17 GB/s). Units and clocks: NVIDIA's data
# sheets and the CUDA programming guide's table of throughputs. Launches: 10 us each without graphs,
# 3 us from a graph. Of the matrix units' rate for bytes (INT8, dense) mma.sync reached 2,600 of 4,096
# products on the H200.
COPY_SHARE = 11.7 / 17
MATRIX_SHARE = 2600 / 4096
GPUS = [
    Gpu("Tegra K1, 852 MHz", 1, 192, 8, 8, 852, 11.7, 10, 0.6),
    Gpu("Tegra K1, 950 MHz", 1, 192, 8, 8, 950, 11.7, 10, 0.6),
    Gpu("Nano", 1, 128, 4, 8, 921, 25.6 * COPY_SHARE, 10, 0.8),
    Gpu("Orin Nano", 8, 128, 2, 4, 625, 68 * COPY_SHARE, 3, 0.8, 2048 * MATRIX_SHARE),
    Gpu("AGX Orin", 16, 128, 2, 4, 1300, 204.8 * COPY_SHARE, 3, 0.8, 2048 * MATRIX_SHARE),
    Gpu("Thor", 20, 128, 2, 4, 1575, 273 * COPY_SHARE, 3, 0.8, 4096 * MATRIX_SHARE),
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
    products: float = 0  # of 16×32 and 32×8 bytes, in matrix units
    units: bool = None  # runs only where there are matrix units, or only where there are none


# Instructions a pixel of rectify.cu: the row and its position 6; rounding, weights and texel 13; the
# lookup 1; interpolation 6; scale, rounding and storing 6. For each column of a warp's rows 70 more:
# on small GPUs a warp takes 32 rows.
RECTIFY_INSTRUCTIONS = 6 + 13 + 1 + 6 + 6
RECTIFY_COLUMN_INSTRUCTIONS = 70
RECTIFY_ROWS = 32
# pyramid.cu: each thread of a block goes through nearly all of the kernel's code, for its 16 bytes of two
# rows of a tile of 128 bytes x 64.
PYRAMID_INSTRUCTIONS = 235
PYRAMID_THREADS = 256
PYRAMID_TILE_BYTES = 128
PYRAMID_TILE_ROWS = 64


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
    tiles = -(-r["width"] // PYRAMID_TILE_BYTES) * -(-r["height"] // PYRAMID_TILE_ROWS)
    launches = max(1, -(-work["top_level"] // 6))
    return Work("pyramid", pixels, written,
                launches * tiles * PYRAMID_THREADS * PYRAMID_INSTRUCTIONS, launches=launches,
                formula="reads W·H, writes W·H·(1/4 + 1/16 + …); 235 in each of 256 threads a tile")


# coarse_search.cu, for GPUs without matrix units: prepare 276 for four pixels of a lane, 128 pixels of a
# row at a time and one pixel more than the row has, for the sum behind the last; bound 25 a run, counted,
# and position of a group; search a fused multiply-add a pixel of the template and position, a fifth more
# for rounded rows and spans, and of all that a quarter more for loads and the list; judge works on what
# the bounds leave, which depends on the picture: as the profiler counted in the frame of
# tests/gpu/figures.cpp.
PREPARE_INSTRUCTIONS = 276
PREPARE_COLUMNS = 128
WARP = 32
RUN_INSTRUCTIONS = 25
SEARCH_OVERHEAD = 1.2 * 1.25
JUDGE_INSTRUCTIONS = 6.7
# coarse_score.cu, for those with: as nvcc made it for sm_90, a warp's part of a tile of pixels, loaded
# for as many octets as coarse_score_plan.cpp has a block take where there are 8 to 20 multiprocessors;
# for each octet the loop over products (55 for 20 of them), what begins a course of strips in both passes,
# and scores: of tiles that see all, and what others take more.
TILE_INSTRUCTIONS = 600
OCTETS_A_TILE = 5
PRODUCT_INSTRUCTIONS = 55 / 20
COURSE_INSTRUCTIONS = 110
SCORE_INSTRUCTIONS = 415
MIXED_INSTRUCTIONS = 250
PRODUCT_BYTES = 16 * 32 * 8


def coarse_without_units(work):
    c = work["coarse"]
    pixels = work["coarse_width"] * work["coarse_height"]
    steps = work["coarse_height"] * -(-(work["coarse_width"] + 1) // PREPARE_COLUMNS)
    yield Work("coarse_prepare", pixels, 12 * pixels, PREPARE_INSTRUCTIONS * WARP * steps,
               formula="reads 1 byte, writes 12 a pixel of the level; 276 a lane for 128 of a row")
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


def coarse(work, octets_a_tile=OCTETS_A_TILE):
    for part in coarse_without_units(work):
        part.units = False
        yield part
    m = work["matrix_units"]
    instructions = (m["warps"] * (TILE_INSTRUCTIONS / octets_a_tile + SCORE_INSTRUCTIONS) +
                    m["mixed_warps"] * MIXED_INSTRUCTIONS + m["courses"] * COURSE_INSTRUCTIONS +
                    m["products"] * PRODUCT_INSTRUCTIONS)
    yield Work("coarse_score", work["coarse_width"] * work["coarse_height"] +
               3 * work["coarse"]["pixels_of_planes"], 0, WARP * instructions,
               formula="535 a warp, 250 more at a border, 110 a course, 2.75 a product",
               products=m["products"], units=True)


# pose_trace.h, pose_refine.h, for what their threads were seen to do. The loops over pixels, as nvcc made
# them for sm_90 at commit 4c5ada4: of the looks' products 387 for 216 multiply-adds; of their samples 310
# for 5 lookups and 40 multiply-adds, of refinement's, bilinear and cubic, 810 for 16 and 176.
# The sum over a warp 270 for 31 exchanges. What one warp of twelve does alone between the
# others' three barriers of a look (where to look next, grids), or of a regression's two: 1350. Every
# block does some before it knows whether it has a candidate; those of glance and step are as the profiler
# counted, refinement's are those up to its exit.
FUSED_INSTRUCTIONS = 387 / 216
LOOK_LOOKUP_INSTRUCTIONS = (310 - 40 * FUSED_INSTRUCTIONS) / 5
LOOKUP_INSTRUCTIONS = {"trace_glance": LOOK_LOOKUP_INSTRUCTIONS,
                       "trace_step": LOOK_LOOKUP_INSTRUCTIONS,
                       "refine_pose": (810 - 176 * FUSED_INSTRUCTIONS) / 16}
EXCHANGE_INSTRUCTIONS = 270 / 31
BARRIER_INSTRUCTIONS = 1350 / 12 / 3
START_INSTRUCTIONS = {"trace_glance": 34, "trace_step": 60, "refine_pose": 292}
# In double precision, a pass of the regression: for each piece of the pattern 16 sums over twelve warps,
# ten coefficients of ten products, a step's 60. Two barriers a pass.
PIECE_PIXELS = 1536
MOST_PIECES = 16
PIECE_DOUBLES = 16 * 12
PASS_DOUBLES = 10 * 10 + 60


def pose_work(name, kernel, launch, step, formula):
    """A launch whose blocks each follow a candidate; step: what of work.json it works on."""
    pixels = step["width"] * step["height"]
    threads = launch["blocks"] * launch["threads"]
    pieces = min(max(pixels // PIECE_PIXELS, 1), MOST_PIECES)
    passes = launch["barriers"] / launch["threads"] / 2
    return Work(name, (16 * pixels if launch["working_blocks"] else 0) +
                launch["working_blocks"] * pixels, 0,
                threads * START_INSTRUCTIONS[kernel] +
                launch["lookups"] * LOOKUP_INSTRUCTIONS[kernel] +
                launch["fused"] * FUSED_INSTRUCTIONS +
                launch["exchanges"] * EXCHANGE_INSTRUCTIONS +
                launch["barriers"] * BARRIER_INSTRUCTIONS,
                passes * (pieces * PIECE_DOUBLES + PASS_DOUBLES), launch["lookups"],
                formula=formula)


def poses(work, launches):
    steps = [step for step in work["steps"] if step["traced"]]
    formula = "48 a lookup, 1.8 a multiply-add, 8.7 an exchange, 38 a barrier"
    for launch, step in zip(launches.get("trace_glance", []), steps):
        yield pose_work("trace_glance", "trace_glance", launch, step,
                        "34 a thread that leaves; nobody looks where few candidates are left")
    for launch, step in zip(launches["trace_step"], steps):
        yield pose_work(f"trace_step, level {step['level']}", "trace_step", launch, step, formula)
    yield pose_work("refine", "refine_pose", launches["refine_pose"][0], work["steps"][-1],
                    formula.replace("48", "31"))


# A block's look at one pose: samples with a rim of one, five at a time a thread, then products, eight at a
# time, for nine shifts; sums over the warps.
SAMPLES_AT_ONCE = 5
PRODUCTS_AT_ONCE = 8
FUSED_A_SAMPLE = 7
FUSED_A_PRODUCT = 27
LOOK_BARRIERS = 3


def one_look(step, threads):
    """What a block that looks at one pose does, as launches.jsonl has it."""
    samples = (step["width"] + 2) * (step["height"] + 2)
    products = step["width"] * step["height"]
    sampled = -(-samples // (SAMPLES_AT_ONCE * threads)) * SAMPLES_AT_ONCE * threads
    multiplied = -(-products // (PRODUCTS_AT_ONCE * threads)) * PRODUCTS_AT_ONCE * threads
    return {"lookups": sampled,
            "fused": FUSED_A_SAMPLE * sampled + FUSED_A_PRODUCT * multiplied,
            "exchanges": (WARP - 1) * threads, "barriers": LOOK_BARRIERS * threads}


def shared_out(launch, members, blocks):
    """The launch as a GPU has it that puts `members` of its `blocks` to each candidate: they share the
    pixels, and each does the algebra."""
    return {**launch, "blocks": blocks, "working_blocks": launch["working_blocks"] * members,
            "barriers": launch["barriers"] * members}


def with_blocks(launch, of, blocks):
    """The launch with `blocks` working blocks that each do what one of the launch's `of` does."""
    per_block = {key: value / of for key, value in launch.items()
                 if key in ("lookups", "fused", "exchanges", "barriers")}
    return {"blocks": max(launch["blocks"], blocks), "threads": launch["threads"],
            "working_blocks": blocks, **{key: value * blocks for key, value in per_block.items()}}


def fullest(work, launches):
    """The launches of a frame with as many candidates as go on at most, each like the recorded ones."""
    steps = work["steps"]
    traced = [i for i, step in enumerate(steps) if step["traced"]]
    most = {"trace_step": [], "refine_pose": []}
    for launch, i in zip(launches["trace_step"], traced):
        most["trace_step"].append(with_blocks(launch, launch["working_blocks"], steps[i - 1]["most_kept"]
                                        if i else work["most_coarse"]))
    refined = launches["refine_pose"][0]
    last = steps[traced[-1]]["most_kept"] if traced else work["most_coarse"]
    most["refine_pose"].append(with_blocks(refined, refined["working_blocks"], last))
    if "trace_glance" in launches:
        glance = launches["trace_glance"][0]
        look = {**glance, **one_look(steps[traced[0]], glance["threads"])}
        most["trace_glance"] = [with_blocks(look, 1, glance["blocks"])]
    return most


# Suppression and the choice of what is followed and kept: short lists, so their launches alone.
LIST_LAUNCHES = 7


def frame(work, launches, octets_a_tile=OCTETS_A_TILE):
    lists = Work("suppression, choices", 0, 0, launches=LIST_LAUNCHES, formula="7 launches")
    return [rectify(work, 1), pyramid(work), *coarse(work, octets_a_tile),
            *poses(work, launches), lists]


# ---- Times ------------------------------------------------------------------------------------
def times_ms(work, gpu):
    """Memory, instructions, lookups, double precision, matrix units: each alone."""
    clocks = gpu.mhz * 1e3 * gpu.multiprocessors  # a millisecond
    return ((work.read + work.written) / gpu.gb_s * 1e-6,
            work.instructions / (clocks * gpu.cores * gpu.issue),
            work.lookups / (clocks * gpu.texels), work.double / (clocks * gpu.doubles),
            work.products * PRODUCT_BYTES / (clocks * gpu.byte_products) if work.products else 0)


def runs_on(work, gpu):
    return work.units is None or work.units == (gpu.byte_products > 0)


def best_ms(work, gpu):
    """All at the same time."""
    return max(times_ms(work, gpu)) + work.launches * gpu.launch_us * 1e-3


def worst_ms(work, gpu):
    """One after the other."""
    return sum(times_ms(work, gpu)) + work.launches * gpu.launch_us * 1e-3


# ---- What was counted --------------------------------------------------------------------------
def launches_of(path):
    """Kernel name -> its launches in the last frame of launches.jsonl, in order."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    by_kernel = {}
    for launch in lines:
        if launch["kernel"].startswith("pyramid_"):
            by_kernel = {}  # a frame's first kernel
        by_kernel.setdefault(launch["kernel"], []).append(launch)
    return by_kernel


def counters_of(path):
    """Kernel name -> its launches in the second of two frames, each metric -> value."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    by_launch = {}
    for row in csv.DictReader(lines):
        name = re.sub(r"\(.*", "", row.get("Kernel Name", "")).replace("patternd_", "")
        value = row.get("Metric Value", "").replace(",", "")
        if name and re.fullmatch(r"[0-9.eE+-]+", value):
            by_launch.setdefault((name, row["ID"]), {})[row["Metric Name"]] = float(value)
    by_kernel = {}
    for (name, _), metrics in by_launch.items():
        by_kernel.setdefault(name, []).append(metrics)
    return {name: seen[len(seen) // 2:] for name, seen in by_kernel.items()}


COUNTED_AS = {"rectify, 8 bit": "rectify_gray8", "rectify, 32 bit": "rectify_gray_f32",
              "pyramid": "pyramid_halve_gray8", "refine": "refine_pose"}
# Counted and executed instructions agree within this factor; those of poses within the other.
MARGIN = 1.4
POSE_MARGIN = 1.2


def print_counters(works, counters):
    print("| kernel | bytes read, counted | from DRAM | instructions, counted | executed | double, "
          "counted | executed | us |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    taken = {}
    for work in works:
        name = COUNTED_AS.get(work.kernel, work.kernel.split(",")[0])
        launch = taken.setdefault(name, 0)
        taken[name] += 1
        if launch >= len(counters.get(name, [])):
            continue
        seen = counters[name][launch]
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
        cells = [f"{best_ms(work, gpu):.2f} – {worst_ms(work, gpu):.2f}" if runs_on(work, gpu)
                 else "" for gpu in GPUS]
        print(f"| {work.kernel} | " + " | ".join(cells) + " |")


def print_frame(works, title):
    cells = []
    for gpu in GPUS:
        best = sum(best_ms(work, gpu) for work in works if runs_on(work, gpu))
        worst = sum(worst_ms(work, gpu) for work in works if runs_on(work, gpu))
        cells.append(f"{best:.1f} – {worst:.1f}")
    print(f"| {title} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", nargs="?", help="what patternd-frame-work printed")
    parser.add_argument("launches", nargs="?", help="what the emulated driver wrote")
    parser.add_argument("--counters", help="what ncu --csv printed")
    parser.add_argument("--metrics", action="store_true", help="print what ncu has to count, and end")
    arguments = parser.parse_args()
    if arguments.metrics:
        print(METRICS)
        return 0
    if arguments.launches is None:
        parser.error("which work.json and launches.jsonl? patternd-frame-work prints the one, the "
                     "emulated driver the other")
    with open(arguments.work, encoding="utf-8") as file:
        work = json.load(file)
    launches = launches_of(arguments.launches)
    works = frame(work, launches)
    all_works = [rectify(work, 4), *works]
    print_kernels(all_works)
    print()
    if arguments.counters:
        print_counters(all_works, counters_of(arguments.counters))
        print()
    print_times(all_works, "ms")
    print_frame(works, "whole frame")
    print_frame(frame(work, fullest(work, launches)), "with the most candidates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
