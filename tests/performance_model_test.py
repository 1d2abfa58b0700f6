#!/usr/bin/env python3
"""The model behind cuda/PERFORMANCE.md: its arithmetic and what it reads."""
import json
import os
import sys
import tempfile
import unittest

SOURCE = os.environ.get("PATTERND_SOURCE", os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(SOURCE, "cuda"))
sys.dont_write_bytecode = True
import performance_model as model  # noqa: E402

WORK = {"rectification": {"width": 1024, "height": 1024, "share_read": 0.5, "patches": 1024,
                          "patch_bytes": 96},
        "top_level": 2, "coarse_width": 256, "coarse_height": 256, "most_coarse": 64,
        "coarse": {"planes": 72, "groups": 10, "positions": 40000, "pixels_of_planes": 72 * 256,
                   "runs_of_groups": 160, "border_positions": 0, "multiply_adds": 40000 * 72 * 256},
        "matrix_units": {"warps": 6000, "mixed_warps": 500, "products": 1.2e6, "courses": 12000},
        "steps": [{"level": 2, "width": 32, "height": 32, "traced": False, "by_regression": True,
                   "most_kept": 60},
                  {"level": 1, "width": 64, "height": 64, "traced": True, "by_regression": True,
                   "most_kept": 30},
                  {"level": 0, "width": 128, "height": 128, "traced": False,
                   "by_regression": True, "most_kept": 20}]}


LAUNCH = {"blocks": 10, "threads": 32, "working_blocks": 4, "lookups": 1000, "fused": 2700,
          "exchanges": 310, "barriers": 192}
RECORDED = os.path.join(SOURCE, "cuda", "measurements", "2026-11-30-")


class PerformanceModel(unittest.TestCase):
    def test_counts_rectification_by_hand(self):
        work = model.rectify(WORK, 4)
        self.assertEqual(work.read, 1024 * 1024 * 4 * 0.5 + 1024 * 96)
        self.assertEqual(work.written, 1024 * 1024 * 4)
        self.assertEqual(work.lookups, 1024 * 1024)

    def test_is_bound_by_the_slowest_and_at_worst_by_their_sum(self):
        gpu = model.Gpu("made", 1, 100, 10, 10, 1, 1, 1000, 1)
        work = model.Work("made", 4e5, 6e5, 2e5, 1e4, 4e4)
        # 1 ms of memory, 2 of arithmetic, 4 of lookups, 1 of doubles; 1 ms for the launch.
        for got, wanted in zip(model.times_ms(work, gpu), (1, 2, 4, 1)):
            self.assertAlmostEqual(got, wanted)
        self.assertAlmostEqual(model.best_ms(work, gpu), 5)
        self.assertAlmostEqual(model.worst_ms(work, gpu), 9)

    def test_searches_by_matrix_units_where_there_are_some(self):
        names = {gpu.name: [work.kernel for work in model.coarse(WORK) if model.runs_on(work, gpu)]
                 for gpu in model.GPUS}
        self.assertEqual(names["Nano"], ["coarse_prepare", "coarse_bound", "coarse_search",
                                         "coarse_judge"])
        self.assertEqual(names["AGX Orin"], ["coarse_score"])
        gpu = model.Gpu("made", 1, 1e9, 10, 10, 1, 1, 0, 1, byte_products=4096)
        score = list(model.coarse(WORK))[-1]
        # 1.2 million products, one a clock of 1 MHz.
        self.assertAlmostEqual(model.times_ms(score, gpu)[4], 1200)

    def test_knows_the_thesiss_copy_on_k1(self):
        k1 = next(gpu for gpu in model.GPUS if "950" in gpu.name)
        copy = model.Work("copy", 4 * 1024 * 1024, 4 * 1024 * 1024, launches=0)
        self.assertAlmostEqual(model.best_ms(copy, k1), 0.717, places=3)

    def test_takes_every_step_that_runs_and_no_other(self):
        launches = {"trace_glance": [LAUNCH], "trace_step": [LAUNCH], "refine_pose": [LAUNCH]}
        self.assertEqual([work.kernel for work in model.poses(WORK, launches)],
                         ["trace_glance", "trace_step, level 1", "refine"])

    def test_counts_what_threads_did_and_those_that_left(self):
        work = model.pose_work("made", "trace_glance", LAUNCH, WORK["steps"][1], "")
        cost = (1000 * model.LOOKUP_INSTRUCTIONS["trace_glance"] +
                2700 * model.FUSED_INSTRUCTIONS +
                310 * model.EXCHANGE_INSTRUCTIONS + 192 * model.BARRIER_INSTRUCTIONS)
        self.assertAlmostEqual(work.instructions, 10 * 32 * 34 + cost)
        self.assertEqual(work.lookups, 1000)
        # Three passes over two pieces of the pattern.
        self.assertEqual(work.double, 3 * (2 * 16 * 12 + 160))

    def test_fills_a_frame_with_the_most_candidates(self):
        launches = {"trace_glance": [{**LAUNCH, "working_blocks": 0}], "trace_step": [LAUNCH],
                    "refine_pose": [LAUNCH]}
        most = model.fullest(WORK, launches)
        self.assertEqual([most[kernel][0]["working_blocks"] for kernel in
                          ("trace_glance", "trace_step", "refine_pose")], [10, 60, 30])
        self.assertEqual(most["trace_step"][0]["lookups"], 60 * 1000 / 4)
        # 66x66 samples by 32 threads that take five at a time: 28 rounds.
        self.assertEqual(most["trace_glance"][0]["lookups"], 10 * 28 * 5 * 32)

    def test_reads_the_second_frame_of_what_ncu_prints(self):
        text = '==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
        for launch, value in enumerate(("1,000", "2,000", "3,000", "4,000")):
            text += f'"{launch}","patternd_trace_step(P)","dram__bytes_read.sum","byte","{value}"\n'
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text)
            file.flush()
            self.assertEqual(model.counters_of(file.name),
                             {"trace_step": [{"dram__bytes_read.sum": 3000},
                                             {"dram__bytes_read.sum": 4000}]})

    def test_reads_the_last_frame_of_what_the_emulated_driver_wrote(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for kernel, blocks in (("pyramid_halve_gray8", 1), ("trace_step", 2),
                                   ("pyramid_halve_gray8", 3), ("trace_step", 4),
                                   ("trace_step", 5)):
                file.write(json.dumps({"kernel": kernel, "blocks": blocks}) + "\n")
            file.flush()
            found = model.launches_of(file.name)
        self.assertEqual([launch["blocks"] for launch in found["trace_step"]], [4, 5])


# How the H200 shared the frame out: octets of planes that a block of the search takes, blocks of a launch
# that follows candidates, and those that work on one of them.
OCTETS_A_TILE = 1
TRACE_STEPS_SHARED = ((1, 100), (4, 400))
REFINE_SHARED = (16, 265)


def profiled(name):
    """Executed instructions by kernel, levels of the trace together, from the table of a recorded run."""
    with open(RECORDED + name, encoding="utf-8") as file:
        table = file.read().split("| from DRAM |")[1].split("\n\n")[0]
    executed = {}
    for line in table.splitlines()[2:]:
        row = [cell.strip() for cell in line.strip("| ").split("|")]
        kernel = row[0].split(",")[0]
        executed[kernel] = executed.get(kernel, 0) + float(row[4])
    return executed


def instructions_of_the_profile():
    """Of complete.txt, and of the search without matrix units, which the H200 runs no more, of all.txt."""
    before = {kernel: count for kernel, count in profiled("h200-all.txt").items()
              if kernel.startswith("coarse_")}
    return {**before, **profiled("h200-complete.txt")}


class CountsBesideTheProfiler(unittest.TestCase):
    """What the model counts in the recorded frame is what the H200 executed in it."""

    def setUp(self):
        with open(RECORDED + "frame-work.json", encoding="utf-8") as file:
            work = json.load(file)
        launches = model.launches_of(RECORDED + "frame-launches.jsonl")
        launches["trace_step"] = [model.shared_out(launch, *shared) for launch, shared in
                                  zip(launches["trace_step"], TRACE_STEPS_SHARED)]
        launches["refine_pose"] = [model.shared_out(launches["refine_pose"][0], *REFINE_SHARED)]
        counted = {}
        for part in model.frame(work, launches, OCTETS_A_TILE):
            name = part.kernel.split(",")[0]
            counted[name] = counted.get(name, 0) + part.instructions
        self.counted = counted
        self.executed = instructions_of_the_profile()

    def expect_within(self, margin, kernel):
        ratio = self.counted[kernel] / self.executed[kernel]
        self.assertTrue(1 / margin < ratio < margin, f"{kernel}: {ratio:.2f} of what was executed")

    def test_of_the_search_and_before_within_the_margin(self):
        for kernel in ("pyramid", "coarse_prepare", "coarse_bound", "coarse_search",
                       "coarse_judge", "coarse_score"):
            with self.subTest(kernel):
                self.expect_within(model.MARGIN, kernel)

    def test_of_poses_within_the_closer_margin(self):
        for kernel in ("trace_glance", "trace_step", "refine"):
            with self.subTest(kernel):
                self.expect_within(model.POSE_MARGIN, kernel)


if __name__ == "__main__":
    unittest.main()
