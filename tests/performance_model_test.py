#!/usr/bin/env python3
"""The model behind cuda/PERFORMANCE.md: its arithmetic and what it reads."""
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
        "steps": [{"level": 2, "width": 32, "height": 32, "traced": False, "by_regression": True,
                   "most_kept": 60},
                  {"level": 1, "width": 64, "height": 64, "traced": True, "by_regression": True,
                   "most_kept": 30},
                  {"level": 0, "width": 128, "height": 128, "traced": False,
                   "by_regression": True, "most_kept": 20}]}


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

    def test_knows_the_thesiss_copy_on_k1(self):
        k1 = next(gpu for gpu in model.GPUS if "950" in gpu.name)
        copy = model.Work("copy", 4 * 1024 * 1024, 4 * 1024 * 1024, launches=0)
        self.assertAlmostEqual(model.best_ms(copy, k1), 0.717, places=3)

    def test_takes_every_step_that_runs_and_no_other(self):
        self.assertEqual([work.kernel for work in model.poses(WORK)],
                         ["trace_glance", "trace_step, level 1", "refine"])

    def test_reads_what_ncu_prints(self):
        text = ('==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
                '"0","patternd_rectify_gray8(P)","dram__bytes_read.sum","byte","1,000"\n'
                '"1","patternd_rectify_gray8(P)","dram__bytes_read.sum","byte","3,000"\n'
                '"2","patternd_rectify_gray8(P)","dram__bytes_read.sum","byte","2,000"\n')
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text)
            file.flush()
            self.assertEqual(model.counters_of(file.name),
                             {"rectify_gray8": {"dram__bytes_read.sum": 2000}})


if __name__ == "__main__":
    unittest.main()
