// The functions of the CUDA runtime that a bundle's launcher calls, without a GPU: they say what
// they were asked to do, a line each, and kernels do nothing. Streams are numbers. A stream that is
// captured keeps what is started there, and a graph says it when it is launched.
#include "runtime.h"
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {
using Lines = std::vector<std::string>;

struct State {
  std::mutex mutex;
  std::map<cudaStream_t, Lines> captured;
  std::map<cudaGraph_t, Lines> graphs;
  std::map<cudaGraphExec_t, Lines> executables;
  std::set<std::string> failing;
  std::map<std::string, int> counts;
  Lines said;
  long made = 1000;  // handles
};

State& state() {
  static State* const one = new State;
  return *one;
}

thread_local int current_device = 0;

// Of a call's name: whether it fails. Each call is counted.
bool fails(const char* call) {
  ++state().counts[call];
  return state().failing.count(call) > 0;
}

template <class Handle> Handle fresh() {
  return reinterpret_cast<Handle>(++state().made);
}

void started(cudaStream_t stream, const std::string& what) {
  const auto found = state().captured.find(stream);
  if (found != state().captured.end())
    found->second.push_back(what);
  else
    state().said.push_back(what + " on " + std::to_string(reinterpret_cast<long>(stream)));
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* address, const cuuint64_t*,
                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  ++state().counts["encode"];
  map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
  return CUDA_SUCCESS;
}
}  // namespace

namespace pretend {
void fail(const std::string& call, bool whether) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (whether)
    state().failing.insert(call);
  else
    state().failing.erase(call);
}

int count(const std::string& call) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().counts[call];
}

std::size_t graphs() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().executables.size();
}

std::vector<std::string> said() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  Lines lines;
  lines.swap(state().said);
  return lines;
}

std::vector<std::string> captured(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  Lines lines = state().captured[stream];
  state().captured.erase(stream);
  return lines;
}

void capture(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().captured[stream];
}

void use_device(int device) {
  current_device = device;
}
}  // namespace pretend

#define LOCKED(call)                                     \
  const std::lock_guard<std::mutex> lock(state().mutex); \
  if (fails(call)) return cudaErrorInvalidValue

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  LOCKED("cudaFuncSetAttribute");
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
  LOCKED("cudaLaunchKernelExC");
  const auto name = static_cast<const char*>(kernel);
  const long first = *static_cast<const long*>(args[0]);
  started(config->stream, std::string(name) + "(" + std::to_string(first) + ")");
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* address, int, size_t bytes, cudaStream_t stream) {
  LOCKED("cudaMemsetAsync");
  const long at = reinterpret_cast<long>(address);
  started(stream, "zero(" + std::to_string(at) + ", " + std::to_string(bytes) + ")");
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  LOCKED("cudaStreamIsCapturing");
  const bool is = state().captured.count(stream) > 0;
  *status = is ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  LOCKED("cudaStreamCreateWithFlags");
  *stream = fresh<cudaStream_t>();
  ++state().counts["streams"];
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LOCKED("cudaStreamDestroy");
  state().captured.erase(stream);
  --state().counts["streams"];
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  LOCKED("cudaStreamBeginCapture");
  state().captured[stream];
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  LOCKED("cudaStreamEndCapture");
  *graph = fresh<cudaGraph_t>();
  state().graphs[*graph] = state().captured[stream];
  state().captured.erase(stream);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  LOCKED("cudaGraphInstantiateWithFlags");
  *executable = fresh<cudaGraphExec_t>();
  state().executables[*executable] = state().graphs[graph];
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  LOCKED("cudaGraphDestroy");
  state().graphs.erase(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  LOCKED("cudaGraphExecDestroy");
  return state().executables.erase(executable) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  LOCKED("cudaGraphLaunch");
  const auto found = state().executables.find(executable);
  if (found == state().executables.end()) return cudaErrorInvalidValue;
  std::string all;
  for (const std::string& line : found->second)
    all += (all.empty() ? "" : ", ") + line;
  started(stream, "graph of " + all);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  LOCKED("cudaGetDriverEntryPoint");
  *function = reinterpret_cast<void*>(&encode);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
