// Library: a shared library opened at run time and never closed (drivers do not survive being
// unloaded).
//
//   const Library library{"libfoo.so.2", "libfoo.so.1"};            // the first that opens
//   int (*const add)(int, int) = library["foo_add"];                // null where there is none
//   if (!library.complete()) …                                      // not open, or a symbol asked
//   for was missing
#pragma once
#include <dlfcn.h>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace warploom::runtime {
// An address that becomes whatever kind of function it is given to.
struct Symbol {
  void* address;

  template <class F> operator F*() const { return reinterpret_cast<F*>(address); }
};

// Makes a library's objects as create(&object, arguments...), each until its last copy goes; null
// where there is none.
template <class... Arguments> struct Maker {
  int (*create)(void**, Arguments...);
  int (*destroy)(void*);

  std::shared_ptr<void> operator()(Arguments... arguments) const {
    void* object = nullptr;
    return create(&object, arguments...) == 0 ? std::shared_ptr<void>(object, destroy) : nullptr;
  }
};

class Library {
 public:
  explicit Library(std::span<const std::string> names) {
    for (const std::string& name : names) {
      handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) name_ = name;
      if (handle_) return;
      // The first reason is the telling one: the soname itself; what follows are guesses at
      // folders.
      if (const char* text = ::dlerror(); text && why_not_.empty()) why_not_ = text;
    }
  }

  Library(std::initializer_list<const char*> names)
      : Library(std::vector<std::string>(names.begin(), names.end())) {}

  explicit operator bool() const { return handle_ != nullptr; }

  bool complete() const { return handle_ && missing_.empty(); }

  const std::string& name() const { return name_; }  // as it was asked for

  const std::string& why_not() const { return why_not_; }  // the loader's words

  const std::string& missing() const {
    return missing_;
  }  // the symbols that were not found: "foo_add, foo_sub"

  Symbol operator[](const char* symbol) const {
    void* address = handle_ ? ::dlsym(handle_, symbol) : nullptr;
    if (!address) missing_ += (missing_.empty() ? "" : ", ") + std::string(symbol);
    return {address};
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::string why_not_;
  mutable std::string missing_;
};
}  // namespace warploom::runtime
