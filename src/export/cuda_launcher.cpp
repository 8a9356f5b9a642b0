// The host side of a CUDA bundle: plain C++ on the CUDA runtime. Only cuTensorMapEncodeTiled is a driver call; it is asked for
// through the runtime, so that nothing links with libcuda.

#include "export/parts.h"
#include "runtime/type_codes.h"
namespace warploom::export_ {
namespace {
constexpr std::string_view kHeader = R"(@SUMMARY@//
// Every tensor is packed, row-major, in device memory, and aligned to 16 bytes:
@PARAMETERS@#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

@TYPES@extern "C" {

// Bytes of device memory that @NAME@_launch needs as its workspace; 0: none, and it may be null.
std::size_t @NAME@_workspace_bytes(void);

// Starts the computation on `stream` and returns at once. The workspace is aligned to 256 bytes and belongs to this launch
// until it is done. Returns cudaSuccess, or the error of the first call that failed. The GPU must be @GPU@.
cudaError_t @NAME@_launch(@DECLARED@void* workspace, cudaStream_t stream);

}  // extern "C"
)";

constexpr std::string_view kSource = R"(@SUMMARY@#include "@NAME@.h"

@INCLUDES@
@KERNELS@
namespace {
#define TRY(call) \
  if (const cudaError_t status = (call); status != cudaSuccess) return status

@HELPERS@cudaError_t launch(const void* kernel, dim3 grid, dim3 cluster, unsigned threads, std::size_t shared_bytes, void** args,
                   bool cooperative, bool overlaps, cudaStream_t stream) {
  if (shared_bytes > 0)
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const unsigned blocks = cluster.x * cluster.y * cluster.z;
  if (blocks > 1) {
    if (blocks > 8) TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x;
    attribute.val.clusterDim.y = cluster.y;
    attribute.val.clusterDim.z = cluster.z;
  }
  if (cooperative) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  if (overlaps) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes;
  return cudaLaunchKernelExC(&config, kernel, args);
}
}  // namespace
std::size_t @NAME@_workspace_bytes(void) { return @WORKSPACE_BYTES@; }

cudaError_t @NAME@_launch(@DECLARED@void* workspace, cudaStream_t stream) {
@BODY@  return cudaSuccess;
}
)";

constexpr std::string_view kTensorMapHelper =
    R"(using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Describes a tensor to the copy engine. Dimension 0 is the fastest; strides are those of dimensions 1 and on.
cudaError_t encode(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, const void* address, const cuuint64_t* dims,
                   const cuuint64_t* strides_bytes, const cuuint32_t* box, CUtensorMapSwizzle swizzle) {
  static void* function = nullptr;
  if (function == nullptr) {
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
#else
    TRY(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess || function == nullptr) return cudaErrorNotSupported;
  }
  const cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  const CUresult result = reinterpret_cast<Encode>(function)(
      map, type, rank, const_cast<void*>(address), dims, strides_bytes, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

)";

std::string list_of(const std::vector<std::int64_t>& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); }

std::string dim3_of(const std::array<std::int64_t, 3>& extent) {
  return fmt::format("dim3({}, {}, {})", extent[0], extent[1], extent[2]);
}

// One block of the launcher's body: arguments, then the launch.
Result<std::string> launch_text(const Frame& frame, std::size_t index) {
  const Kernel& kernel = frame.list.kernels[index];
  std::string text = fmt::format("  {{  // {}\n", kernel.name), args;
  for (std::size_t i = 0; i < kernel.args.size(); ++i) {
    const Argument& arg = kernel.args[i];
    WARPLOOM_TRY(const std::string address, address_of(frame, arg.buffer));
    if (arg.zeroed) text += fmt::format("    TRY(cudaMemsetAsync({}, 0, {}, stream));\n", address, bytes_of(frame, arg.buffer));
    if (arg.tensor_map) {
      const TensorMapSpec& map = arg.map;
      const std::vector<std::int64_t> strides = map.strides_bytes.empty() ? std::vector<std::int64_t>{0} : map.strides_bytes;
      text += fmt::format(
          "    const cuuint64_t dims_{0}[] = {1}, strides_{0}[] = {2};\n"
          "    const cuuint32_t box_{0}[] = {3};\n    CUtensorMap argument_{0};\n"
          "    TRY(encode(&argument_{0}, CU_TENSOR_MAP_DATA_TYPE_{4}, {5}, {6}, dims_{0}, strides_{0}, box_{0}, "
          "CU_TENSOR_MAP_SWIZZLE_{7}));\n",
          i, list_of(map.dims), list_of(strides), list_of(map.box), runtime::codes_of(map.dtype).map_name, map.dims.size(),
          address, map.swizzle_bytes == 0 ? "NONE" : fmt::format("{}B", map.swizzle_bytes));
    } else {
      text += fmt::format("    const void* argument_{} = {};\n", i, address);
    }
    args += fmt::format("{}{}&argument_{}", i ? ", " : "", arg.tensor_map ? "" : "const_cast<void**>(", i) +
            (arg.tensor_map ? "" : ")");
  }
  text +=
      fmt::format("    void* args[] = {{{}}};\n    TRY(launch({}_kernel_{}(), {}, {}, {}, {}, args, {}, {}, stream));\n  }}\n",
                  args, frame.name, index, dim3_of(kernel.grid), dim3_of(kernel.cluster), kernel.threads, kernel.shared_bytes,
                  kernel.cooperative, kernel.overlaps && index > 0);
  return text;
}

// Pointers need only the names of CUDA's small types.
std::string forward_types(const Frame& frame) {
  std::string text;
  for (const auto& parameter : frame.parameters)
    if (parameter.type.starts_with("__") && text.find(parameter.type + ";") == std::string::npos)
      text += fmt::format("struct {};\n", parameter.type);
  return text.empty() ? "" : text + "\n";
}
}  // namespace
Result<std::vector<BundleFile>> cuda_launcher(const Frame& frame) {
  bool maps = false;
  std::string kernels, body;
  for (std::size_t i = 0; i < frame.list.kernels.size(); ++i) {
    for (const auto& arg : frame.list.kernels[i].args) maps |= arg.tensor_map;
    kernels += fmt::format("extern \"C\" const void* {}_kernel_{}();\n", frame.name, i);
    WARPLOOM_TRY(const std::string text, launch_text(frame, i));
    body += text;
  }
  const std::int64_t bytes = workspace_offsets(frame.list).back();
  const Values values = {
      {"NAME", frame.name},
      {"SUMMARY", comment(frame.summary)},
      {"PARAMETERS", describe_parameters(frame)},
      {"TYPES", forward_types(frame)},
      {"GPU", "an " + frame.list.arch},
      {"DECLARED", declare_parameters(frame)},
      {"INCLUDES", maps ? "#include <cuda.h>\n" : ""},
      {"KERNELS", kernels},
      {"HELPERS", maps ? std::string(kTensorMapHelper) : ""},
      {"WORKSPACE_BYTES", std::to_string(bytes)},
      {"BODY",
       (bytes > 0 ? "  if (workspace == nullptr) return cudaErrorInvalidValue;\n" : "  static_cast<void>(workspace);\n") + body}};
  return std::vector<BundleFile>{{frame.name + ".h", fill_in(kHeader, values)},
                                 {frame.name + "_host.cpp", fill_in(kSource, values)}};
}
}  // namespace warploom::export_
