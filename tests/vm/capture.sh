#!/bin/bash
# Inside the VM: captures from two virtual cameras, one single-planar, one multi-planar.
set -e
modprobe vivid n_devs=2 node_types=0x1,0x1 multiplanar=1,2
udevadm settle
"$VM_IN/vivid_check" --gtest_color=no
