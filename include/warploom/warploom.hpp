// Warploom's C++ interface: warploom.h with values that clean up after themselves and errors that
// are thrown. Header only; needs C++17.
//
//   // The outcome is a JSON object.
//   const std::vector<std::string> search = {"optimize", "conv.onnx", "--out", "conv"};
//   const std::string outcome = warploom::command(search);
//
//   warploom::Bundle conv("conv", warploom::Trust::given);
//   for (const auto& tensor : conv.tensors()) allocate(tensor.bytes);
//   conv.run({x, w, y}, stream);
#pragma once
#include <warploom/warploom.h>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace warploom {
// What failed: what() says it in several lines, code() is stable ("plan-invalid"), status() what
// the command line exits with.
class Failure : public std::runtime_error {
 public:
  explicit Failure(int status)
      : std::runtime_error(warploom_error_text()), code_(warploom_error_code()), status_(status) {}

  const std::string& code() const { return code_; }

  int status() const { return status_; }

 private:
  std::string code_;
  int status_;
};

// Runs `warploom ARGUMENTS --json`: the object that it printed.
inline std::string command(const std::vector<std::string>& arguments) {
  std::vector<const char*> words;
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);
  char* text = nullptr;
  const int status = warploom_command(words.data(), &text);
  const std::unique_ptr<char, void (*)(char*)> owner(text, warploom_free);
  if (status != 0) throw Failure(status);
  return text;
}

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;
  bool is_output = false;
};

// Whether you answer for whoever wrote a bundle: WARPLOOM_TRUST of warploom.h.
enum class Trust { none, given };

// A loaded bundle. Copies share it.
class Bundle {
 public:
  explicit Bundle(const std::string& folder, Trust trust = Trust::none) {
    warploom_bundle* loaded = nullptr;
    const unsigned flags = trust == Trust::given ? WARPLOOM_TRUST : 0;
    if (const int status = warploom_open(folder.c_str(), flags, &loaded); status != 0)
      throw Failure(status);
    bundle_.reset(loaded, warploom_unload);
    for (std::size_t i = 0; i < warploom_tensor_count(loaded); ++i) {
      const warploom_tensor one = warploom_tensor_at(loaded, i);
      Tensor tensor{one.name, one.dtype, {}, one.bytes, one.is_output != 0};
      tensor.shape.assign(one.shape, one.shape + one.rank);
      tensors_.push_back(std::move(tensor));
    }
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }  // inputs, then outputs

  // One address for each tensor; `stream` as in warploom_run.
  void run(const std::vector<void*>& addresses, void* stream = nullptr) {
    if (addresses.size() != tensors_.size())
      throw std::invalid_argument("one address for each tensor is needed");
    if (const int status = warploom_run(bundle_.get(), addresses.data(), stream); status != 0)
      throw Failure(status);
  }

 private:
  std::shared_ptr<warploom_bundle> bundle_;
  std::vector<Tensor> tensors_;
};
}  // namespace warploom
