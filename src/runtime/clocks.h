// What a GPU says of its clocks, through NVML (libnvidia-ml.so.1) opened at run time; zeros where there is none.
#pragma once

#include <string>

namespace warploom::runtime {

struct Clocks {
  double sm_mhz = 0, memory_mhz = 0, watts = 0, celsius = 0;
};

class ClockReader {
 public:
  explicit ClockReader(const std::string& pci_bus_id);  // "0000:1b:00.0", as the driver names it
  Clocks read() const;

 private:
  void* device_ = nullptr;
};

}  // namespace warploom::runtime
