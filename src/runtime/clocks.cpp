#include "runtime/clocks.h"

#include "runtime/library.h"

namespace warploom::runtime {
namespace {

// Source: NVML API reference, "Device Queries".
struct Nvml {
  int (*init)() = nullptr;
  int (*handle)(const char* bus_id, void** device) = nullptr;
  int (*clock)(void* device, int kind, unsigned* mhz) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  bool ready = false;

  Nvml() {
    const Library library{"libnvidia-ml.so.1"};
    ready = library && library.find("nvmlInit_v2", init) && library.find("nvmlDeviceGetHandleByPciBusId_v2", handle) &&
            library.find("nvmlDeviceGetClockInfo", clock) && library.find("nvmlDeviceGetPowerUsage", power) &&
            library.find("nvmlDeviceGetTemperature", temperature) && init() == 0;
  }
};
const Nvml& nvml() {
  static const Nvml instance;
  return instance;
}
constexpr int kClockSm = 1, kClockMemory = 2, kSensorGpu = 0;

}  // namespace

ClockReader::ClockReader(const std::string& pci_bus_id) {
  if (!nvml().ready || nvml().handle(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

Clocks ClockReader::read() const {
  Clocks clocks;
  if (!device_) return clocks;
  unsigned value = 0;
  if (nvml().clock(device_, kClockSm, &value) == 0) clocks.sm_mhz = value;
  if (nvml().clock(device_, kClockMemory, &value) == 0) clocks.memory_mhz = value;
  if (nvml().power(device_, &value) == 0) clocks.watts = value / 1000.0;
  if (nvml().temperature(device_, kSensorGpu, &value) == 0) clocks.celsius = value;
  return clocks;
}

}  // namespace warploom::runtime
