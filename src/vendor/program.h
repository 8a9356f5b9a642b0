// What makes references: a program in the making, and the libraries that add to it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>
#include "base/error.h"
#include "runtime/executor.h"
#include "vendor/places.h"
#include "vendor/problem.h"

namespace warploom::vendor {
// What is bound to buffers later, all at once: the problem's tensors and scratch, by name.
using Piece = std::function<Result<runtime::Call>(const runtime::Bindings& buffers)>;

struct Program {
  std::map<std::string, int64_t> scratch;  // bytes of each
  std::vector<Piece> pieces;               // run in order
  std::vector<Piece> prepare;              // run once, when buffers are bound
  std::set<std::string> constants;         // of the buffers, those that hold the same in every call

  // A new one.
  std::string add_scratch(const std::string& like, int64_t bytes);

  // What was added last only lays out `buffer` in another way: where that is constant, once.
  void prepare_last(const std::string& buffer);
};

// A library that was found on this machine, at work on one program.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string name() const = 0;  // with its version: "oneDNN 2.6.3"
  // Appends what does the step; fails where the library does not serve it, and then leaves the
  // program right, if perhaps with more in it.
  virtual Status add(const Step& step, Program& program) = 0;

  // Somebody else reads `buffer` next: it must hold the tensor row by row.
  virtual Status release(const std::string&, Program&) { return ok(); }
};

// What a library answers for a step outside what it serves.
tl::unexpected<Error> not_served(const std::string& library, std::string_view what);

// The libraries, null where one is not on this machine.
enum class Layouts : uint8_t { rows, own };  // tensors as they come, or as the library likes

std::unique_ptr<Library> dnnl_library(Layouts layouts, const VendorProblem& problem);
std::unique_ptr<Library> openblas_library();
std::unique_ptr<Library> cublaslt_library(runtime::Executor& device);
std::unique_ptr<Library> cudnn_library(runtime::Executor& device, Layouts layouts, Track track,
                                       const VendorProblem& problem);
}  // namespace warploom::vendor
