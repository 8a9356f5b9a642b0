#include "runtime/library.h"

#include <dlfcn.h>

namespace warploom::runtime {

Library::Library(std::span<const std::string> names) {
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      name_ = name;
      return;
    }
    // The first reason is the telling one: the soname itself; what follows are guesses at folders.
    if (const char* text = ::dlerror(); text && why_not_.empty()) why_not_ = text;
  }
}

void* Library::address(const char* symbol) const { return handle_ ? ::dlsym(handle_, symbol) : nullptr; }

}  // namespace warploom::runtime
