// Library: a shared library opened at run time and never closed (drivers do not survive being unloaded).
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace warploom::runtime {

class Library {
 public:
  // The first of `names` that opens; empty when none does.
  explicit Library(std::span<const std::string> names);
  Library(std::initializer_list<const char*> names) : Library(std::vector<std::string>(names.begin(), names.end())) {}

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }  // as it was asked for
  const std::string& why_not() const { return why_not_; }
  // Sets `function` to the symbol; false, and null, when there is none.
  template <class F>
  bool find(const char* symbol, F*& function) const {
    function = reinterpret_cast<F*>(address(symbol));
    return function != nullptr;
  }

 private:
  void* address(const char* symbol) const;
  void* handle_ = nullptr;
  std::string name_, why_not_;
};

}  // namespace warploom::runtime
