// cuDNN, opened at run time: the C API that its eighth and ninth versions share. Source: cuDNN
// documentation, "API reference" of the libraries ops and cnn; the numbers are those of its enums.
// Within the room only: cudnn.cpp finds the library, tries calls and keeps tensors in the layout
// with channels last; cudnn_steps.cpp makes calls of steps, cudnn_convolution.cpp of convolutions.
//
// Which calls cuDNN serves depends on version, card, types and layouts, and it only says so when it
// is called. So every call is tried once on buffers of zeros before it becomes part of a program.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "runtime/library.h"
#include "vendor/libraries.h"
#include "vendor/program.h"

namespace warploom::vendor {
using Handle = void*;
using Object = std::shared_ptr<void>;

// One algorithm of a convolution, as cuDNN's search reports it.
struct CudnnPerformance {
  int algorithm = 0;
  int status = 0;
  float milliseconds = 0;
  size_t workspace_bytes = 0;
  int deterministic = 0;
  int math_type = 0;
  int reserved[3] = {};
};

struct Cudnn {
  // The C functions' types. A tensor is passed as its descriptor and its address; every result is a
  // cudnnStatus_t, 0 where it worked.
  using Count = size_t();
  using Create = int(Handle*);
  using SetStream = int(Handle, void* stream);
  using SetTensor = int(Handle, int type, int rank, const int* sizes, const int* strides);
  using SetFilter = int(Handle, int type, int format, int rank, const int* sizes);
  using SetConvolution = int(Handle, int rank, const int* pads, const int* strides,
                             const int* dilations, int mode, int type);
  using SetNumber = int(Handle, int);
  using Search = int(Handle, Handle, const void*, Handle, const void*, Handle, Handle, void*,
                     int wanted, int* found, CudnnPerformance*, void* workspace,
                     size_t workspace_bytes);
  using Convolve = int(Handle, const void* alpha, Handle, const void* x, Handle, const void* w,
                       Handle, int algorithm, void* workspace, size_t bytes, const void* beta,
                       Handle, void* y);
  using ConvolveFused = int(Handle, const void* alpha, Handle, const void* x, Handle, const void* w,
                            Handle, int algorithm, void* workspace, size_t bytes,
                            const void* alpha_z, Handle, const void* z, Handle, const void* bias,
                            Handle activation, Handle, void* y);
  using SetActivation = int(Handle, int mode, int nan, double coefficient);
  using Activate = int(Handle, Handle, const void* alpha, Handle, const void* x, const void* beta,
                       Handle, void* y);
  using SetPooling = int(Handle, int mode, int nan, int rank, const int* window, const int* pads,
                         const int* strides);
  using Softmax = int(Handle, int algorithm, int mode, const void* alpha, Handle, const void* x,
                      const void* beta, Handle, void* y);
  using BatchNorm = int(Handle, int mode, const void* alpha, const void* beta, Handle,
                        const void* x, Handle, void* y, Handle, const void* scale,
                        const void* shift, const void* mean, const void* variance, double epsilon);
  using BatchNormOfOwn = int(Handle, int mode, const void* alpha, const void* beta, Handle,
                             const void* x, Handle, void* y, Handle, const void* scale,
                             const void* shift, double factor, void* mean, void* variance,
                             double epsilon, void* saved_mean, void* saved_inverse);
  using SetReduction = int(Handle, int op, int type, int nan, int indices, int index_type);
  using ReductionWorkspace = int(Handle, Handle, Handle, Handle, size_t* bytes);
  using Reduce = int(Handle, Handle, void* indices, size_t, void* workspace, size_t,
                     const void* alpha, Handle, const void* x, const void* beta, Handle, void* y);
  using SetCombination = int(Handle, int op, int type, int nan);
  using Combine = int(Handle, Handle, const void* alpha, Handle, const void* a, const void* beta,
                      Handle, const void* b, const void* gamma, Handle, void* c);
  using SetLrn = int(Handle, unsigned size, double alpha, double beta, double k);
  using Normalize = int(Handle, Handle, int mode, const void* alpha, Handle, const void* x,
                        const void* beta, Handle, void* y);
  using Transform = int(Handle, const void* alpha, Handle, const void* x, const void* beta, Handle,
                        void* y);

  const runtime::Library library{cudnn_names()};
  Create* create = library["cudnnCreate"];
  Count* version = library["cudnnGetVersion"];
  SetStream* set_stream = library["cudnnSetStream"];
  runtime::Maker<> tensor{library["cudnnCreateTensorDescriptor"],
                          library["cudnnDestroyTensorDescriptor"]};
  SetTensor* tensor_set = library["cudnnSetTensorNdDescriptor"];
  runtime::Maker<> filter{library["cudnnCreateFilterDescriptor"],
                          library["cudnnDestroyFilterDescriptor"]};
  SetFilter* filter_set = library["cudnnSetFilterNdDescriptor"];
  runtime::Maker<> convolution{library["cudnnCreateConvolutionDescriptor"],
                               library["cudnnDestroyConvolutionDescriptor"]};
  SetConvolution* convolution_set = library["cudnnSetConvolutionNdDescriptor"];
  SetNumber* groups_set = library["cudnnSetConvolutionGroupCount"];
  SetNumber* math_set = library["cudnnSetConvolutionMathType"];
  Search* find_forward = library["cudnnFindConvolutionForwardAlgorithmEx"];
  Search* find_backward = library["cudnnFindConvolutionBackwardDataAlgorithmEx"];
  Convolve* forward = library["cudnnConvolutionForward"];
  Convolve* backward = library["cudnnConvolutionBackwardData"];
  ConvolveFused* fused = library["cudnnConvolutionBiasActivationForward"];
  runtime::Maker<> activation{library["cudnnCreateActivationDescriptor"],
                              library["cudnnDestroyActivationDescriptor"]};
  SetActivation* activation_set = library["cudnnSetActivationDescriptor"];
  Activate* activate = library["cudnnActivationForward"];
  runtime::Maker<> pooling{library["cudnnCreatePoolingDescriptor"],
                           library["cudnnDestroyPoolingDescriptor"]};
  SetPooling* pooling_set = library["cudnnSetPoolingNdDescriptor"];
  Activate* pool = library["cudnnPoolingForward"];
  Softmax* softmax = library["cudnnSoftmaxForward"];
  BatchNorm* batch_norm = library["cudnnBatchNormalizationForwardInference"];
  BatchNormOfOwn* batch_norm_of_own = library["cudnnBatchNormalizationForwardTraining"];
  runtime::Maker<> reduction{library["cudnnCreateReduceTensorDescriptor"],
                             library["cudnnDestroyReduceTensorDescriptor"]};
  SetReduction* reduction_set = library["cudnnSetReduceTensorDescriptor"];
  ReductionWorkspace* reduction_workspace = library["cudnnGetReductionWorkspaceSize"];
  Reduce* reduce = library["cudnnReduceTensor"];
  runtime::Maker<> combination{library["cudnnCreateOpTensorDescriptor"],
                               library["cudnnDestroyOpTensorDescriptor"]};
  SetCombination* combination_set = library["cudnnSetOpTensorDescriptor"];
  Combine* combine = library["cudnnOpTensor"];
  runtime::Maker<> lrn{library["cudnnCreateLRNDescriptor"], library["cudnnDestroyLRNDescriptor"]};
  SetLrn* lrn_set = library["cudnnSetLRNDescriptor"];
  Normalize* normalize = library["cudnnLRNCrossChannelForward"];
  Transform* transform = library["cudnnTransformTensor"];
  Handle handle = nullptr;
  bool ready = library.complete() && create(&handle) == 0;

  static const Cudnn& get();
  std::string name() const;  // "cuDNN 9.5.1"
};

constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr int kPropagateNan = 1;
constexpr int kFloat = 0;  // cudnnDataType_t

// A tensor of a call: how it lies, and where.
struct CudnnTensor {
  const Object& layout;
  void* data = nullptr;
};

// y = function(factor · x), of which nothing that y held is kept: most of cuDNN's functions end in
// these six arguments. `first` are those before them, without the library's handle.
template <class Function, class... First>
int overwrite_scaled(Function* function, const float& factor, const CudnnTensor& x,
                     const CudnnTensor& y, First... first) {
  const Handle handle = Cudnn::get().handle;
  const Handle from = x.layout.get();
  const Handle to = y.layout.get();
  return function(handle, first..., &factor, from, x.data, &kZero, to, y.data);
}

template <class Function, class... First>
int overwrite(Function* function, const CudnnTensor& x, const CudnnTensor& y, First... first) {
  return overwrite_scaled(function, kOne, x, y, first...);
}

using Addresses = std::vector<void*>;  // of tensors, in the order of a call's places

// What a call takes for a descriptor that must outlive it, or for a number.
inline Handle argument(const Object& descriptor) {
  return descriptor.get();
}

template <class Number> Number argument(Number number) {
  return number;
}

// The call y = factor · function(x), of the first two of its places; `first` as above.
template <class Function, class... First>
auto overwriting_scaled(Function* function, float factor, const Object& x, const Object& y,
                        const First&... first) {
  return [=](const Addresses& at) {
    const CudnnTensor from{x, at[0]};
    const CudnnTensor to{y, at[1]};
    return overwrite_scaled(function, factor, from, to, argument(first)...);
  };
}

template <class Function, class... First>
auto overwriting(Function* function, const Object& x, const Object& y, const First&... first) {
  return overwriting_scaled(function, kOne, x, y, first...);
}

class CudnnLibrary : public Library {
 public:
  CudnnLibrary(runtime::Executor& device, Layouts layouts, Track track,
               const VendorProblem& problem);

  std::string name() const override { return d_.name(); }

  Status add(const Step& step, Program& program) override;
  Status release(const std::string& buffer, Program& program) override;

 private:
  // A call on tensors at these addresses, and its status.
  using Work = std::function<int(const Addresses& addresses)>;

  // What a scratch buffer holds before the first call, and keeps where nothing is written.
  struct Filled {
    std::string buffer;
    uint32_t word = 0;
  };

  Status attempt(const std::vector<Place>& places, const Work& work, std::string_view what,
                 Program& program, const std::vector<Filled>& filled = {});
  Result<runtime::Bindings> trial(const std::vector<Place>& places,
                                  const std::vector<Filled>& filled, const Program& program);
  static Addresses addresses_of(const runtime::Bindings& buffers, const std::vector<Place>& places);

  Object tensor_of(const Place& place) const;
  Work transforming(const Object& x, const Object& y) const;
  Status copy(const Place& from, const Place& to, Program& program);
  // Where a tensor that is read lies, in rows or with channels last.
  Result<Place> rows(const Place& place, Program& program);
  Result<Place> read(const Place& place, Program& program);
  Place to_write(const Place& place, Program& program) const;
  Status deliver(const Place& place, const Place& written, Program& program);
  Place scratch_like(const Place& place, Shape shape, bool channels_last, Program& program) const;
  Result<Place> padded(const Place& src, const Window& window, const Shape& wanted, uint32_t border,
                       Program& program);

  Status make(const Convolution& call, const Step& step, Program& program);
  Status make(const Deconvolution& call, const Step& step, Program& program);
  Status make(const Pooling& call, const Step& step, Program& program);
  Status make(const Matmul& call, const Step& step, Program& program);
  Status make(const Softmax& call, const Step& step, Program& program);
  Status make(const BatchNorm& call, const Step& step, Program& program);
  Status make(const LayerNorm& call, const Step& step, Program& program);
  Status make(const Reduction& call, const Step& step, Program& program);
  Status make(const Lrn& call, const Step& step, Program& program);
  Status make(const Copy& call, const Step& step, Program& program);
  Status make(const Elementwise& call, const Step& step, Program& program);
  Status make(const Unmatched& call, const Step& step, Program& program);
  Status function(const After& after, const Place& src, const Place& dst, Program& program);
  Status combination(const After& after, const Place& src, const Place& dst, Program& program);

  // cudnn_convolution.cpp
  struct Convolving;
  struct Convolved;
  struct Fused;
  static std::optional<Fused> fused_of(const std::vector<After>& after, const Place& dst);
  Status convolve(const Convolved& ready, Program& program);
  Status convolve_fused(const Convolved& ready, const Fused& fused, const Place& wanted,
                        Program& program);
  Result<Convolving> convolving(const Place& weights, const Window& window, int64_t groups,
                                Program& program);
  Result<std::vector<CudnnPerformance>> search(Cudnn::Search* find, const Convolving& with,
                                               const std::vector<Place>& places, Handle first,
                                               Handle second, Handle third, const Program& program);

  tl::unexpected<Error> refused(std::string_view what) const { return not_served(name(), what); }

  int type_of(Dtype dtype) const;  // cudnnDataType_t, -1: none

  // Strict fp32 is what no tensor core does.
  bool is_strict(const Place& weights) const {
    return weights.dtype == Dtype::f32 && track_ == Track::fp32;
  }

  const Cudnn& d_ = Cudnn::get();
  runtime::Executor& device_;
  Layouts layouts_;
  Track track_;
  bool own_now_ = false;
  std::set<std::string> passed_on_;
  std::map<std::string, std::pair<Place, Place>> kept_;  // in rows, and where it lies instead
};

// Windows of two or three axes: one of a single axis gets another of size 1 before it.
Place spatial(const Place& place);
Window spatial(const Window& window);

// Elements of the input from the first to the last that a window reads along spatial axis `d`.
inline int64_t reach_of(const Window& window, size_t d) {
  const int64_t steps = window.kernel[d] - 1;
  return steps * window.dilations[d] + 1;
}

std::vector<int> integers(const Shape& shape);
}  // namespace warploom::vendor
