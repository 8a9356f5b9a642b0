// A CPU that is the same whichever machine tests run on: what is proposed and predicted for it does
// not depend on the caches and cores that are here.
#pragma once
#include "target/capabilities.h"

namespace warploom::test {
inline target::Capabilities fixed_cpu() {
  target::Capabilities cpu = *target::capabilities_of("x86-64-v4");
  cpu.card = "";
  cpu.estimated = false;
  cpu.num_sms = 2;
  cpu.shared_bytes = 1 << 20;
  cpu.l2_bytes = 32 << 20;
  cpu.has_bf16_dot = false;
  cpu.has_bf16_tiles = false;
  cpu.dram_gbs = 20;
  cpu.fp32_tflops = 0.2;
  cpu.tf32_tflops = 0.2;
  cpu.half_tflops = 0.4;
  cpu.int8_tops = 0.8;
  cpu.measured = {};
  return cpu;
}
}  // namespace warploom::test
