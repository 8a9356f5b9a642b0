// The device, its attributes, launches and the driver's words.
#include <unistd.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include "pretend.h"
#include "runtime/driver.h"

namespace pretend {
namespace {
std::atomic<int64_t> launches{0};

Settings read_settings() {
  Settings out;
  const char* const text = std::getenv("PRETEND_GPU");
  auto given = nlohmann::json::parse(text ? text : "{}", nullptr, false);
  if (!given.is_object()) given = nlohmann::json::object();
  out.name = given.value("name", out.name);
  out.major = given.value("major", out.major);
  out.minor = given.value("minor", out.minor);
  out.processors = given.value("processors", out.processors);
  out.memory_mb = given.value("memory_mb", out.memory_mb);
  out.init = given.value("init", out.init);
  out.retain = given.value("retain", out.retain);
  out.lost_after = given.value("lost_after", out.lost_after);
  out.lost_file = given.value("lost_file", out.lost_file);
  return out;
}
}  // namespace

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

bool is_lost() {
  const std::string& file = settings().lost_file;
  return !file.empty() && ::access(file.c_str(), F_OK) == 0;
}

CUresult answer() {
  return is_lost() ? kUnknown : 0;
}
}  // namespace pretend

using namespace warploom::runtime;
using pretend::settings;

namespace {
constexpr CUresult kNotFound = 500;
}

extern "C" {
CUresult cuInit(unsigned) {
  return pretend::is_lost() ? pretend::kUnknown : settings().init;
}

// NVIDIA's own libraries ask for tables of functions that no document names; they go on without.
CUresult cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

CUresult cuGetErrorName(CUresult code, const char** text) {
  static const std::map<CUresult, const char*> names = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                                                        {100, "CUDA_ERROR_NO_DEVICE"},
                                                        {999, "CUDA_ERROR_UNKNOWN"}};
  const auto known = names.find(code);
  *text = known == names.end() ? "CUDA_ERROR" : known->second;
  return 0;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  static const std::map<CUresult, const char*> words = {
      {2, "out of memory"},
      {46, "CUDA-capable device(s) is/are busy or unavailable"},
      {100, "no CUDA-capable device is detected"},
      {999, "unknown error"}};
  const auto known = words.find(code);
  *text = known == words.end() ? "error" : known->second;
  return 0;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return pretend::answer();
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, settings().name.c_str(), static_cast<size_t>(length));
  name[length - 1] = '\0';
  return pretend::answer();
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  const std::map<int, int> values = {
      {kAttributeClockKhz, 1'980'000},       {kAttributeProcessors, settings().processors},
      {kAttributeMemoryClockKhz, 2'619'000}, {kAttributeBusBits, 5120},
      {kAttributeL2Bytes, 50 << 20},         {kAttributeThreadsPerProcessor, 2048},
      {kAttributeMajor, settings().major},   {kAttributeMinor, settings().minor},
      {kAttributeSharedBytesOptin, 232'448}};
  const auto known = values.find(attribute);
  *value = known == values.end() ? 0 : known->second;
  return pretend::answer();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice) {
  return pretend::is_lost() ? pretend::kUnknown : settings().retain;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = reinterpret_cast<CUfunction>(8);
  return pretend::answer();
}

CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**) {
  const bool goes = settings().lost_after >= 0 && ++pretend::launches > settings().lost_after;
  if (goes) std::ofstream(settings().lost_file).flush();
  return pretend::answer();
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0.01f;
  return pretend::answer();
}
}
