#include <fmt/format.h>

#include "export/parts.h"
#include "export/text.h"
#include "runtime/cpu_compiler.h"

namespace warploom::export_ {
namespace {

constexpr std::string_view kCuda =
    R"(# make check   compiles the kernels and compares them with stored results
# make clean   removes what was built
# NVCC names another compiler.
NVCC ?= $(shell command -v nvcc || echo /usr/local/cuda/bin/nvcc)
NVCCFLAGS ?= -O3
FLAGS := -std=c++17 -gencode arch=compute_@ARCH@,code=sm_@ARCH@ -Idevice/ptx -Idevice/common

.PHONY: check clean
check: build/check
	./build/check check
build/check: @NAME@.cu @NAME@_host.cpp @NAME@.h check/check.cpp
	@command -v $(NVCC) >/dev/null || { echo "No nvcc was found: install the CUDA toolkit, or say make NVCC=/path/to/nvcc"; exit 1; }
	@mkdir -p build
	$(NVCC) $(FLAGS) $(NVCCFLAGS) -o $@ @NAME@.cu @NAME@_host.cpp check/check.cpp
clean:
	rm -rf build
)";

constexpr std::string_view kCpu = R"(# make check   compiles the kernels and compares them with stored results
# make clean   removes what was built
# CXX and CXXFLAGS name another compiler and other flags.
CXX ?= g++
CXXFLAGS ?= @CPU_FLAGS@
FLAGS := -std=c++20 -pthread -Idevice/cpu -Idevice/common

.PHONY: check clean
check: build/check
	./build/check check
build/check: @NAME@_kernels.cpp @NAME@_host.cpp @NAME@.h check/check.cpp
	@command -v $(CXX) >/dev/null || { echo "No C++ compiler was found: install g++, or say make CXX=/path/to/compiler"; exit 1; }
	@mkdir -p build
	$(CXX) $(FLAGS) $(CXXFLAGS) -o $@ @NAME@_kernels.cpp @NAME@_host.cpp check/check.cpp
clean:
	rm -rf build
)";

constexpr std::string_view kReadme = R"(# @NAME@

@SUMMARY@

@USE@

`make check` compiles everything here and compares it with the FP64 reference on stored inputs (relative Frobenius error at
most @TOLERANCE@). Nothing else is needed: `device/` holds the headers that the kernels include.

| file | what it is |
|---|---|
| `@KERNELS@` | the kernels, as they were judged |
| `@NAME@.h`, `@NAME@_host.cpp` | the function to call |
| `plan.json` | problem, schedule, launch list, verdict and where it was measured |
| `check/` | inputs, expected outputs and the program that compares |
)";

// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags() {
  std::string text;
  for (const std::string_view flag : runtime::cpu_compile_flags())
    if (flag != "-shared" && flag != "-fPIC" && !flag.starts_with("-std="))
      text += (text.empty() ? "" : " ") + std::string(flag);
  return text;
}

}  // namespace

BundleFile makefile(const Frame& frame) {
  const std::string arch = frame.list.arch.starts_with("sm_") ? frame.list.arch.substr(3) : frame.list.arch;
  return {"Makefile", fill_in(on_gpu(frame.list) ? kCuda : kCpu,
                              {{"NAME", frame.name}, {"ARCH", arch}, {"CPU_FLAGS", cpu_flags()}})};
}

BundleFile readme(const Frame& frame, double tolerance) {
  const bool gpu = on_gpu(frame.list);
  std::string call;
  for (const auto& parameter : frame.parameters) call += parameter.variable + ", ";
  const std::string use =
      gpu ? fmt::format(
                "```c++\n#include \"{0}.h\"\n\n// device pointers; workspace of {0}_workspace_bytes() bytes\n"
                "cudaError_t status = {0}_launch({1}workspace, stream);\n```\n\nCompile `{0}.cu` and "
                "`{0}_host.cpp` with "
                "nvcc and `-Idevice/ptx -Idevice/common`; the Makefile has the flags.",
                frame.name, call)
          : fmt::format(
                "```c++\n#include \"{0}.h\"\n\n// pointers aligned to 64 bytes; workspace of "
                "{0}_workspace_bytes() bytes\n"
                "int status = {0}_run({1}workspace);\n```\n\nCompile `{0}_kernels.cpp` and `{0}_host.cpp` "
                "with a C++20 "
                "compiler and `-Idevice/cpu -Idevice/common`; the Makefile has the flags.",
                frame.name, call);
  return {"README.md", fill_in(kReadme, {{"NAME", frame.name},
                                         {"SUMMARY", frame.summary},
                                         {"USE", use},
                                         {"TOLERANCE", fmt::format("{:.1e}", tolerance)},
                                         {"KERNELS", frame.name + (gpu ? ".cu" : "_kernels.cpp")}})};
}

}  // namespace warploom::export_
