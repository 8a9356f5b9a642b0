// How fast an architecture is, for predicting costs: one table an architecture, measured where such a machine was at hand.
//
// The numbers are those that the cost model (synth/cost.h) multiplies with: cycles are of the multiprocessor's clock, rates per
// cycle of one multiprocessor unless it says otherwise. sm_90a is calibrated on an H200 (bench/rank.py, docs/compiler.md);
// sm_80 and sm_89 come from datasheets and are not measured.
#pragma once
#include <string>
namespace warploom::target {
struct Rates {
  double clock_ghz = 1;
  double warp_matrix_cycles = 8;  // one mma.sync of 256 bits of k on one quarter
  double shared_bytes = 128;      // shared memory and L1 serve
  double l2_bytes = 64;           // one multiprocessor draws from the L2 when the others rest
  double l2_total_bytes = 8400;   // all of them together
  double dram_fraction = 0.9;     // of the datasheet's bandwidth that plain copies reach
  double memory_latency = 800;    // of a load that misses the L2
  double store_latency = 300;     // until a multiprocessor's next block may start behind stores
  double shared_latency = 30;
  double barrier_cycles = 30;    // all threads of a block meet
  double cluster_cycles = 1500;  // all blocks of a cluster meet and exchange a value
  double shuffle_cycles = 25;    // one step of a reduction within a warp
  double block_cycles = 1000;    // a block's start and end
  double launch_us = 2;          // of a kernel behind another
  double special_issue = 4;      // issue slots of exp, log, a division and their like
  double access_issue = 6;       // issue slots of one memory access, its addresses included
};
const Rates& rates_of(const std::string& arch);
}  // namespace warploom::target
