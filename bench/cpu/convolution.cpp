// oneDNN's convolution, with a relu in it and a pooling behind it where asked, on tensors that lie
// as a model has them (nchw in and out; the weights are laid out once, outside the clock). Prints
// microseconds, the median of many calls on other inputs each. Usage: convolution BATCH IN HEIGHT
// WIDTH OUT KERNEL STRIDE PAD RELU POOL        POOL: 0, or the side and stride of a max pooling
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <vector>
using dnnl::memory;
using Tag = memory::format_tag;

constexpr int kInputs = 4;
constexpr auto kF32 = memory::data_type::f32;

struct Problem {
  long n;
  long ci;
  long h;
  long w;
  long co;
  long k;
  long stride;
  long pad;
  long relu;
  long pool;

  long p() const { return (h + 2 * pad - k) / stride + 1; }

  long q() const { return (w + 2 * pad - k) / stride + 1; }

  memory::dims input() const { return {n, ci, h, w}; }

  memory::dims weights() const { return {co, ci, k, k}; }

  memory::dims convolved() const { return {n, co, p(), q()}; }

  memory::dims output() const {
    if (!pool) return convolved();
    return {n, co, (p() - pool) / pool + 1, (q() - pool) / pool + 1};
  }
};

memory::desc any(const memory::dims& dims) {
  return {dims, kF32, Tag::any};
}

dnnl::convolution_forward::primitive_desc convolution_of(const Problem& problem,
                                                         const dnnl::engine& engine) {
  dnnl::primitive_attr attributes;
  if (problem.relu) {
    dnnl::post_ops after;
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
  }
  const memory::dims strides = {problem.stride, problem.stride};
  const memory::dims pads = {problem.pad, problem.pad};
  const memory::desc bias({problem.co}, kF32, Tag::a);
  return {
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, any(problem.input()),
       any(problem.weights()), bias, any(problem.convolved()), strides, pads, pads},
      attributes,
      engine};
}

dnnl::pooling_forward::primitive_desc pooling_of(const Problem& problem, const memory::desc& from,
                                                 const dnnl::engine& engine) {
  const memory::dims side = {problem.pool, problem.pool};
  const memory::dims none = {0, 0};
  return {{dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max, from,
           any(problem.output()), side, side, none, none},
          engine};
}

float* values_of(memory& tensor) {
  return static_cast<float*>(tensor.get_data_handle());
}

// The tensors of one problem, and one call of it after another.
class Calls {
 public:
  explicit Calls(const Problem& problem)
      : problem_(problem),
        conv_(convolution_of(problem, engine_)),
        last_(conv_.dst_desc()),
        x_(problem.input(), kF32, Tag::nchw),
        y_(problem.output(), kF32, Tag::nchw) {
    if (problem.pool) {
      const auto pooling = pooling_of(problem, conv_.dst_desc(), engine_);
      pooling_ = dnnl::pooling_forward(pooling);
      last_ = pooling.dst_desc();
    }
    run_ = dnnl::convolution_forward(conv_);
    own_x_ = memory(conv_.src_desc(), engine_);
    own_y_ = memory(conv_.dst_desc(), engine_);
    pooled_ = memory(last_, engine_);
    result_ = memory(y_, engine_);
    fill();
  }

  // Microseconds of one call.
  double time(int turn) {
    memory& input = inputs_[static_cast<size_t>(turn % kInputs)];
    const auto start = std::chrono::steady_clock::now();
    call(input);
    stream_.wait();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::micro>(end - start).count();
  }

 private:
  void fill() {
    const long elements = problem_.n * problem_.ci * problem_.h * problem_.w;
    for (int i = 0; i < kInputs; ++i) {
      inputs_.emplace_back(x_, engine_);
      float* values = values_of(inputs_.back());
      for (long e = 0; e < elements; ++e) values[e] = static_cast<float>((e * 7 + i) % 13 - 6);
    }
    memory plain(memory::desc(problem_.weights(), kF32, Tag::oihw), engine_);
    packed_ = memory(conv_.weights_desc(), engine_);
    bias_ = memory(memory::desc({problem_.co}, kF32, Tag::a), engine_);
    const long weights = problem_.co * problem_.ci * problem_.k * problem_.k;
    for (long e = 0; e < weights; ++e) values_of(plain)[e] = static_cast<float>(e % 5 - 2);
    for (long e = 0; e < problem_.co; ++e) values_of(bias_)[e] = 1;
    dnnl::reorder(plain, packed_).execute(stream_, plain, packed_);
  }

  void call(memory& input) {
    memory from = input;
    if (conv_.src_desc() != x_) {
      dnnl::reorder(input, own_x_).execute(stream_, input, own_x_);
      from = own_x_;
    }
    const bool direct = !problem_.pool && conv_.dst_desc() == y_;
    run_.execute(stream_, {{DNNL_ARG_SRC, from},
                           {DNNL_ARG_WEIGHTS, packed_},
                           {DNNL_ARG_BIAS, bias_},
                           {DNNL_ARG_DST, direct ? result_ : own_y_}});
    memory& made = problem_.pool ? pooled_ : own_y_;
    memory& pooled = last_ == y_ ? result_ : pooled_;
    if (problem_.pool) pooling_.execute(stream_, {{DNNL_ARG_SRC, own_y_}, {DNNL_ARG_DST, pooled}});
    if (!direct && last_ != y_) dnnl::reorder(made, result_).execute(stream_, made, result_);
  }

  Problem problem_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::convolution_forward::primitive_desc conv_;
  dnnl::convolution_forward run_;
  dnnl::pooling_forward pooling_;
  memory::desc last_;  // of what the last primitive writes
  memory::desc x_;
  memory::desc y_;
  std::vector<memory> inputs_;
  memory packed_;
  memory bias_;
  memory own_x_;  // the input and the result in oneDNN's own order
  memory own_y_;
  memory pooled_;
  memory result_;
};

int main(int argc, char** argv) {
  if (argc != 11) {
    std::fprintf(stderr, "see the comment at the top\n");
    return 2;
  }
  long a[10];
  for (int i = 0; i < 10; ++i) a[i] = std::atol(argv[i + 1]);
  Calls calls({a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]});
  std::vector<double> times;
  for (int turn = 0; turn < 60; ++turn) times.push_back(calls.time(turn));
  std::sort(times.begin() + 10, times.end());
  std::printf("%.2f\n", times[10 + (times.size() - 10) / 2]);
}
