// What a target can do: limits and engines, all that kernel builders read of it. Its instruction
// rows are for synthesis.
#pragma once
#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>
#include "base/error.h"
#include "target/card.h"

namespace warploom::target {
// How fast an architecture is, for predicting costs, measured where such a machine was at hand:
// cycles are of the multiprocessor's clock, rates per cycle of one multiprocessor unless it says
// otherwise. sm_90a is calibrated on an H200 (bench/rank.py, docs/compiler.md); sm_80 and sm_89
// come from datasheets and are not measured.
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
  // The clock at which the loop of multiplications and additions of runtime/rates.h ran where these
  // rates are from; 0: it was not run there.
  double loop_ghz = 0;
};

// What this program itself measured on a card (runtime/rates.h). 0: not measured.
struct Measured {
  double copy_gbs = 0;     // a copy's, of what it reads and writes
  double fp32_tflops = 0;  // of plain multiplications and additions
  double half_tflops = 0;  // of tensor cores on halves, sums in fp32
};

struct Capabilities {
  std::string arch;  // "sm_90a", "sm_89", "sm_80"; of a CPU its instruction set, as "x86-64-v4"
  bool gpu = false;
  std::string card;        // whose figures these are: "H100 SXM", or as its driver calls it
  bool estimated = false;  // the card is not listed in cards.def; the CPU is no such processor
  // GPU limits
  int num_sms = 1;           // multiprocessors, or CPU cores
  int64_t shared_bytes = 0;  // a block may use; on the CPU what fits in a core's L2 cache
  int registers = 0;         // 32-bit registers a multiprocessor; on the CPU vector registers
  int threads_per_sm = 2048;
  int max_cluster = 1;  // blocks a cluster, non-portable sizes included

  // Multiprocessors that clusters of `size` blocks can use at once, a block each: a cluster stays
  // within one group of multiprocessors, and the groups are of unequal sizes (asked of an H200:
  // 132, 120, 120, 112 for clusters of 2, 4, 8, 16).
  int64_t cluster_processors(int64_t size) const {
    return size <= 2 ? num_sms : num_sms * 10 / 11 / size * size;
  }

  int64_t clusters_at_once(int64_t size, int64_t resident = 1) const {
    return cluster_processors(size) * resident / size;
  }

  bool has_bf16_dot = false;    // a CPU's sums of products of two bf16 at once (AVX-512 BF16)
  bool has_bf16_tiles = false;  // its tiles of 16 × 16 sums (AMX), which the process may use
  bool has_wgmma = false;       // matrix unit fed from shared memory by four warps
  bool has_tma = false;         // tile copies by a copy engine
  bool has_cp_async = false;    // copies to shared memory behind the threads' backs
  bool has_pdl = false;         // programmatic dependent launch: set up while its predecessor on
                                // the stream ends
  int vector_bytes = 16;  // widest register the CPU computes with; widest global access on the GPU

  int lanes() const { return std::max(4, vector_bytes / 4); }  // floats of a vector on the CPU

  // Rates, for floors and rooflines: datasheet figures; 0: unknown
  double dram_gbs = 0;  // 10^9 bytes a second
  int64_t l2_bytes = 0;
  double fp32_tflops = 0;
  double tf32_tflops = 0;
  double half_tflops = 0;
  double fp8_tflops = 0;
  double int8_tops = 0;
  double narrow_sums = 1;  // how many times as fast tensor cores are that sum in fp16
  Measured measured = {};
  Rates rates = {};

  // What a plain copy reaches: measured, or what is expected. Where nothing is known of the memory
  // it is taken for half as fast as the L2.
  double copy_gbs() const {
    if (measured.copy_gbs > 0) return measured.copy_gbs;
    if (dram_gbs > 0) return dram_gbs * rates.dram_fraction;
    return 0.5 * rates.l2_total_bytes * rates.clock_ghz;
  }
};

// By name: one of the GPU architectures above, which means its first card in cards.def; a card's
// name; "cpu" for this machine; or an instruction set (instruction_set.h) on as many cores as are
// here, caches and cores guessed where it is of another processor. Fails with kUnknownTarget.
Result<Capabilities> capabilities_of(const std::string& target);
// Of a card that is here, as its driver describes it. An architecture that is not known is planned
// for as the newest whose instructions it still has, and compiled under its own name.
Result<Capabilities> capabilities_of_device(const DeviceFacts& device);
// With measured rates, which predictions then go by.
Capabilities with_measured(Capabilities capabilities, const Measured& measured);

// Names of architectures, "cpu", and names of instruction sets.
std::vector<std::string> known_targets();

// What of the capabilities a card decides, for the record of a search, and back: what a record
// lacks stays.
nlohmann::json to_json(const Measured& measured);
Measured measured_from(const nlohmann::json& record);
nlohmann::json card_to_json(const Capabilities& capabilities);
Capabilities with_card(Capabilities capabilities, const nlohmann::json& card);
}  // namespace warploom::target
