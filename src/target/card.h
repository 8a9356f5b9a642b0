// Cards: what GPUs of one architecture differ in. An H100 PCIe and an H200 run the same code; one
// has 114 multiprocessors and 2.0 TB/s, the other 132 and 4.8.
//
// A card's peaks are the vendor's, from a table by its name (cards.def); how many multiprocessors
// there are and how large its L2 is, its driver says. Of a card that the table lacks the driver's
// clocks, bus width and multiprocessors count, times what its architecture does a clock: such peaks
// are `estimated`.
//
//   card_named("h100-sxm")->gbs                          // 3350
//   card_of_device("NVIDIA H100 80GB HBM3")->name        // "H100 SXM"
//   capabilities_of_device(facts)->dram_gbs              // capabilities.h
//
// Units: GHz, 10^9 bytes a second, operations a clock of one multiprocessor. Sources: cards.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warploom::target {
// What a multiprocessor can do, in operations a clock; 0: there is no such unit.
struct Units {
  std::string_view name;
  std::string_view arch;
  double fp32;
  double tf32;
  double half;
  double fp8;
  double int8;
  double narrow;  // how many times as fast tensor cores are that sum in fp16
};

// A row of cards.def.
struct Card {
  std::string_view name;    // "H100 SXM"
  const Units* units;       // of its multiprocessors
  std::string_view device;  // "NVIDIA H100 80GB HBM3"
  int num_sms;
  double ghz;         // boost
  double tensor_ghz;  // of the vendor's tensor rates
  double gbs;
  int l2_mib;
};

const std::vector<Card>& cards();
const std::vector<Units>& all_units();

// By its name, upper or lower case, whatever stands between its words; null: none is listed.
const Card* card_named(std::string_view name);
// By the name that drivers give it.
const Card* card_of_device(std::string_view device);
// The one that is planned for where only the architecture is known.
const Card* default_card(std::string_view arch);

// What a driver says of a card. 0: it does not say.
struct DeviceFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string arch;  // "sm_90a"
  int num_sms = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes = 0;  // that a block may use
  int threads_per_sm = 0;    // that a multiprocessor holds
  double ghz = 0;            // the highest clock of the multiprocessors
  double memory_ghz = 0;     // newer drivers say 0, or what is no clock of the memory
  int bus_bits = 0;

  // Memory transfers twice a clock.
  double gbs() const { return 2 * memory_ghz * bus_bits / 8; }
};
}  // namespace warploom::target
