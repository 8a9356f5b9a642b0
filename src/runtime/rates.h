// Rates: the card or machine that is here, and what it was measured to reach.
//
// Data sheets state what no kernel reaches. Loops of our own measure what one does: a plain copy,
// multiplications and additions of fp32 in registers, products of halves on tensor cores. That is
// done once a card and kept in the cache folder, by the card's name, its driver and its clocks;
// then predictions and reports go by it.
//
//   WARPLOOM_TRY(auto capabilities, capabilities_here(Engine::cuda));  // with rates, if measured
//   capabilities.dram_gbs;           // 3350, by the data sheet
//   capabilities.measured.copy_gbs;  // 3044
//
// On the CPU `half` is not measured. Units: 10^9 bytes a second, bytes read and written both
// counted; 10^12 operations a second, an addition and a multiplication one each.
//
// Errors: what opening, compiling and running the loops can fail with; file-unwritable, disk-full.
#pragma once
#include "runtime/executor.h"
#include "target/capabilities.h"

namespace warploom::runtime {
target::DeviceFacts facts_of(const DeviceInfo& device);

// To plan for what is here: facts of its driver, the table of cards, and rates as they are stored.
// Fails with no-driver, no-gpu, gpu-too-old.
Result<target::Capabilities> capabilities_here(Engine engine);

// How long rates are measured, and which.
struct RateOptions {
  double seconds = 0.6;  // of each loop
  bool tensor = true;    // tensor cores too, whose loop takes longest to compile
};

// Runs the loops. Nothing else should run on the device meanwhile.
Result<target::Measured> measure_rates(Executor& device, const RateOptions& options = {});

// What is stored of this device; zeros where nothing is, or it was another driver or clock.
target::Measured stored_rates(const DeviceInfo& device);
Status store_rates(const DeviceInfo& device, const target::Measured& measured);

// Rates of the device as they are stored, measured first where there are none. What can be measured
// in a part of `seconds` is, and the rest stays unknown.
Result<target::Measured> rates_within(Engine engine, double seconds);
}  // namespace warploom::runtime
