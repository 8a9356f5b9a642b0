// oneDNN, opened at run time: the C API of its second version, the one that Debian 12 has
// (libdnnl.so.2). Source: oneDNN developer guide, "C API", and the numbers of dnnl_types.h.

#include "runtime/library.h"
#include "runtime/type_codes.h"
#include "runtime/vendor.h"

namespace warploom::runtime {
namespace {
using Handle = void*;
using Object = std::shared_ptr<void>;
using Dims = std::array<std::int64_t, 12>;  // as many as oneDNN reads

constexpr int kCpu = 1, kForwardInference = 96, kSoftmaxAccurate = 0x30000;
constexpr unsigned kInOrder = 1;
constexpr int kArgSrc = 1, kArgDst = 17, kArgWeights = 33, kArgBias = 41;

struct Version {
  int major, minor, patch;
};

struct ExecArg {
  int arg;
  Handle memory;
};

struct Dnnl {
  const Library library{"libdnnl.so.2"};
  const Version* (*version)() = library["dnnl_version"];
  int (*engine_create)(Handle*, int kind, std::size_t index) = library["dnnl_engine_create"];
  int (*stream_create)(Handle*, Handle engine, unsigned flags) = library["dnnl_stream_create"];
  int (*stream_wait)(Handle) = library["dnnl_stream_wait"];
  int (*desc_init)(void*, int rank, const std::int64_t*, int type,
                   const std::int64_t*) = library["dnnl_memory_desc_init_by_strides"];
  // Of a descriptor, an engine and the data.
  Maker<const void*, Handle, void*> memory{library["dnnl_memory_create"],
                                           library["dnnl_memory_destroy"]};
  Maker<> attributes{library["dnnl_primitive_attr_create"], library["dnnl_primitive_attr_destroy"]};
  int (*attr_set_post_ops)(Handle, const void*) = library["dnnl_primitive_attr_set_post_ops"];
  Maker<> post_ops{library["dnnl_post_ops_create"], library["dnnl_post_ops_destroy"]};
  int (*append_eltwise)(Handle, float scale, int algorithm, float alpha,
                        float beta) = library["dnnl_post_ops_append_eltwise"];
  int (*matmul_init)(void*, const void* src, const void* weights, const void* bias,
                     const void* dst) = library["dnnl_matmul_desc_init"];
  int (*softmax_init)(void*, int kind, int algorithm, const void* src, const void* dst,
                      int axis) = library["dnnl_softmax_v2_forward_desc_init"];
  // Of an operation, attributes, an engine and a hint; and of such a descriptor.
  Maker<const void*, const void*, Handle, const void*> primitive_desc{
      library["dnnl_primitive_desc_create"], library["dnnl_primitive_desc_destroy"]};
  Maker<const void*> primitive{library["dnnl_primitive_create"], library["dnnl_primitive_destroy"]};
  int (*execute)(const void*, Handle stream, int count,
                 const ExecArg*) = library["dnnl_primitive_execute"];
  Handle engine = nullptr, stream = nullptr;
  bool ready = library.complete() && engine_create(&engine, kCpu, 0) == 0 &&
               stream_create(&stream, engine, kInOrder) == 0;
};

// Descriptors are structures that the caller holds: here a block of bytes large enough for any
// (matmul's is 2.7 kB in 2.6).
struct alignas(64) Block {
  std::array<std::byte, 16384> bytes{};
};

// A tensor of the primitive: its buffer, its argument number, its layout.
struct Operand {
  BufferSpec buffer;
  int arg = 0;
  Block desc;
};
}  // namespace

Result<Runnable> dnnl_reference(const VendorProblem& p) {
  static const Dnnl d;
  if (!d.ready) return not_served("oneDNN", "no libdnnl.so.2");
  const std::string name =
      fmt::format("oneDNN {}.{}.{}", d.version()->major, d.version()->minor, d.version()->patch);
  for (const Dtype dtype : {p.in, p.out, p.bias_dtype})
    if (!codes_of(dtype).dnnl) return not_served(name, "an element type");
  const bool matmul = p.kind == VendorKind::matmul, bias = p.bias != BiasKind::none;
  std::vector<Operand> operands;
  // One more operand, of shape [batch, r, c]: a batch of 1 is repeated, as are a bias's other sizes
  // of 1.
  const auto describe = [&](const char* buffer, int arg, Dtype dtype, bool batched, std::int64_t r,
                            std::int64_t c, bool transposed = false) {
    const std::int64_t batch = batched ? p.batch : 1;
    Operand& made = operands.emplace_back(Operand{{buffer, dtype, {batch, r, c}}, arg, {}});
    const Dims dims = {batch, r, c}, strides = {r * c, transposed ? 1 : c, transposed ? r : 1};
    const int first = p.batch == 1;
    return d.desc_init(&made.desc, 3 - first, dims.data() + first, codes_of(dtype).dnnl,
                       strides.data() + first) == 0;
  };
  const Object attributes = d.attributes(), after = d.post_ops();
  bool good = attributes && after;
  Block op;
  if (matmul) {
    good = good && describe("A", kArgSrc, p.in, p.batched_a, p.m, p.k, p.transpose_a) &&
           describe("B", kArgWeights, p.in, p.batched_b, p.k, p.n, p.transpose_b) &&
           describe("C", kArgDst, p.out, true, p.m, p.n) &&
           (!bias || describe("bias", kArgBias, p.bias_dtype, p.bias == BiasKind::full,
                              p.bias == BiasKind::per_column ? 1 : p.m,
                              p.bias == BiasKind::per_row ? 1 : p.n)) &&
           d.matmul_init(&op, &operands[0].desc, &operands[1].desc,
                         bias ? &operands[3].desc : nullptr, &operands[2].desc) == 0;
  } else {
    good = good && describe("X", kArgSrc, p.in, true, p.m, p.n) &&
           describe("Y", kArgDst, p.out, true, p.m, p.n) &&
           d.softmax_init(&op, kForwardInference, kSoftmaxAccurate, &operands[0].desc,
                          &operands[1].desc, 1) == 0;
  }
  if (good && matmul && p.activation != Activation::none)
    good = d.append_eltwise(after.get(), 1.0f, row_of(p.activation).dnnl,
                            p.activation == Activation::silu ? 1.0f : 0.0f, 0) == 0 &&
           d.attr_set_post_ops(attributes.get(), after.get()) == 0;
  const Object desc = good ? d.primitive_desc(&op, attributes.get(), d.engine, nullptr) : nullptr;
  const Object primitive = desc ? d.primitive(desc.get()) : nullptr;
  if (!primitive)
    return not_served(name, "the operation with these types, shapes or post-operations");

  const auto bind = [name, operands, primitive](const Bindings& buffers) -> Result<Call> {
    std::vector<std::pair<Buffer, Object>> kept;
    std::vector<ExecArg> arguments;
    for (const Operand& operand : operands) {
      WARPLOOM_TRY(const Buffer buffer, named_buffer(buffers, operand.buffer));
      const Object memory = d.memory(&operand.desc, d.engine, buffer.address());
      if (!memory) return not_served(name, "a memory object it refused");
      kept.emplace_back(buffer, memory);
      arguments.push_back({operand.arg, memory.get()});
    }
    return [name, primitive, kept, arguments]() -> Status {
      const int code = d.execute(primitive.get(), d.stream, static_cast<int>(arguments.size()),
                                 arguments.data());
      if (code == 0 && d.stream_wait(d.stream) == 0) return ok();
      return fail({ErrorCode::kInternal, "dnnl_primitive_execute failed", name, "status 0",
                   fmt::format("status {}", code)});
    };
  };
  return Runnable{name, bind};
}
}  // namespace warploom::runtime
