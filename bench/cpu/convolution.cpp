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

int main(int argc, char** argv) {
  if (argc != 11) {
    std::fprintf(stderr, "see the comment at the top\n");
    return 2;
  }
  long a[10];
  for (int i = 0; i < 10; ++i) a[i] = std::atol(argv[i + 1]);
  const auto [n, ci, h, w, co, k, stride, pad, relu, pool] = a;
  const long p = (h + 2 * pad - k) / stride + 1;
  const long q = (w + 2 * pad - k) / stride + 1;
  constexpr int kInputs = 4;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto f32 = memory::data_type::f32;
  const memory::desc x({n, ci, h, w}, f32, Tag::nchw);
  const memory::desc weights({co, ci, k, k}, f32, Tag::oihw);
  const memory::desc any_weights({co, ci, k, k}, f32, Tag::any);
  const memory::desc any_x({n, ci, h, w}, f32, Tag::any);
  const memory::desc bias({co}, f32, Tag::a);
  const memory::desc y({n, co, p, q}, f32, Tag::nchw);
  const memory::desc any_y({n, co, p, q}, f32, Tag::any);

  dnnl::primitive_attr attributes;
  if (relu) {
    dnnl::post_ops after;
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
  }
  const dnnl::convolution_forward::primitive_desc conv({dnnl::prop_kind::forward_inference,
                                                        dnnl::algorithm::convolution_auto,
                                                        any_x,
                                                        any_weights,
                                                        bias,
                                                        any_y,
                                                        {stride, stride},
                                                        {pad, pad},
                                                        {pad, pad}},
                                                       attributes, engine);
  std::vector<memory> inputs;
  for (int i = 0; i < kInputs; ++i) {
    inputs.emplace_back(x, engine);
    auto* values = static_cast<float*>(inputs.back().get_data_handle());
    for (long e = 0; e < n * ci * h * w; ++e) values[e] = static_cast<float>((e * 7 + i) % 13 - 6);
  }
  memory plain(weights, engine);
  memory packed(conv.weights_desc(), engine);
  memory b(bias, engine);
  memory own_x(conv.src_desc(), engine);
  memory own_y(conv.dst_desc(), engine);
  for (long e = 0; e < co * ci * k * k; ++e)
    static_cast<float*>(plain.get_data_handle())[e] = static_cast<float>(e % 5 - 2);
  for (long e = 0; e < co; ++e) static_cast<float*>(b.get_data_handle())[e] = 1;
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  const dnnl::convolution_forward run(conv);

  memory::desc last = conv.dst_desc();
  memory::desc out = y;
  dnnl::pooling_forward pooling;
  if (pool) {
    out = memory::desc({n, co, (p - pool) / pool + 1, (q - pool) / pool + 1}, f32, Tag::nchw);
    const dnnl::pooling_forward::primitive_desc of({dnnl::prop_kind::forward_inference,
                                                    dnnl::algorithm::pooling_max,
                                                    conv.dst_desc(),
                                                    memory::desc(out.dims(), f32, Tag::any),
                                                    {pool, pool},
                                                    {pool, pool},
                                                    {0, 0},
                                                    {0, 0}},
                                                   engine);
    pooling = dnnl::pooling_forward(of);
    last = of.dst_desc();
  }
  memory pooled(last, engine);
  memory result(out, engine);

  std::vector<double> times;
  for (int turn = 0; turn < 60; ++turn) {
    memory& input = inputs[static_cast<size_t>(turn % kInputs)];
    const auto start = std::chrono::steady_clock::now();
    memory from = input;
    if (conv.src_desc() != x) {
      dnnl::reorder(input, own_x).execute(stream, input, own_x);
      from = own_x;
    }
    const bool direct = !pool && conv.dst_desc() == y;
    run.execute(stream, {{DNNL_ARG_SRC, from},
                         {DNNL_ARG_WEIGHTS, packed},
                         {DNNL_ARG_BIAS, b},
                         {DNNL_ARG_DST, direct ? result : own_y}});
    memory& made = pool ? pooled : own_y;
    if (pool)
      pooling.execute(stream,
                      {{DNNL_ARG_SRC, own_y}, {DNNL_ARG_DST, last == out ? result : pooled}});
    if (!direct && last != out) dnnl::reorder(made, result).execute(stream, made, result);
    stream.wait();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin() + 10, times.end());
  std::printf("%.2f\n", times[10 + (times.size() - 10) / 2]);
}
