#include "export/parts.h"
#include "runtime/cpu_compiler.h"
namespace warploom::export_ {
namespace {
constexpr std::string_view kMakefile =
    R"(# make check   compiles the kernels and compares them with stored results
# make clean   removes what was built
# @COMPILER@ and @COMPILER@FLAGS name another compiler and other flags.
@COMPILER@ ?= @PROGRAM@
@COMPILER@FLAGS ?= @DEFAULTS@
FLAGS := @FLAGS@

.PHONY: check clean
check: build/check
	./build/check check
build/check: @KERNELS@ @NAME@_host.cpp @NAME@.h check/check.cpp
	@command -v $(@COMPILER@) >/dev/null || { echo "No compiler was found: install @PACKAGE@, or say make @COMPILER@=/path/to/compiler"; exit 1; }
	@mkdir -p build
	$(@COMPILER@) $(FLAGS) $(@COMPILER@FLAGS) -o $@ @KERNELS@ @NAME@_host.cpp check/check.cpp
clean:
	rm -rf build
)";

constexpr std::string_view kReadme = R"(# @NAME@

@SUMMARY@

```c++
#include "@NAME@.h"

// @POINTERS@; workspace of @NAME@_workspace_bytes() bytes
@CALL@
```

Compile `@KERNELS@` and `@NAME@_host.cpp` with @PACKAGE@ and the folders of `device/` as include folders; the Makefile has the
flags. `make check` compiles everything here and compares it with the FP64 reference on stored inputs (relative Frobenius error at
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
    if (flag != "-shared" && flag != "-fPIC" && !flag.starts_with("-std=")) text += (text.empty() ? "" : " ") + std::string(flag);
  return text;
}
}  // namespace
BundleFile makefile(const Frame& frame) {
  const std::string& arch = frame.list.arch;
  const std::string number = arch.starts_with("sm_") ? arch.substr(3) : arch;
  Values values = {{"NAME", frame.name}};
  if (on_gpu(frame.list))
    values.insert(values.end(), {{"COMPILER", "NVCC"},
                                 {"PROGRAM", "$(shell command -v nvcc || echo /usr/local/cuda/bin/nvcc)"},
                                 {"DEFAULTS", "-O3"},
                                 {"FLAGS", fmt::format("-std=c++17 -gencode arch=compute_{0},code=sm_{0} -Idevice/ptx "
                                                       "-Idevice/common",
                                                       number)},
                                 {"KERNELS", frame.name + ".cu"},
                                 {"PACKAGE", "the CUDA toolkit"}});
  else
    values.insert(values.end(), {{"COMPILER", "CXX"},
                                 {"PROGRAM", "g++"},
                                 {"DEFAULTS", cpu_flags()},
                                 {"FLAGS", "-std=c++20 -pthread -Idevice/cpu -Idevice/common"},
                                 {"KERNELS", frame.name + "_kernels.cpp"},
                                 {"PACKAGE", "g++"}});
  return {"Makefile", fill_in(kMakefile, values)};
}

BundleFile readme(const Frame& frame, double tolerance) {
  const bool gpu = on_gpu(frame.list);
  std::string arguments;
  for (const auto& parameter : frame.parameters) arguments += parameter.variable + ", ";
  const std::string call = gpu ? "cudaError_t status = {}_launch({}workspace, stream);" : "int status = {}_run({}workspace);";
  return {"README.md", fill_in(kReadme, {{"NAME", frame.name},
                                         {"SUMMARY", frame.summary},
                                         {"POINTERS", gpu ? "device pointers" : "pointers aligned to 64 bytes"},
                                         {"CALL", fmt::format(fmt::runtime(call), frame.name, arguments)},
                                         {"PACKAGE", gpu ? "nvcc" : "a C++20 compiler"},
                                         {"TOLERANCE", fmt::format("{:.1e}", tolerance)},
                                         {"KERNELS", frame.name + (gpu ? ".cu" : "_kernels.cpp")}})};
}
}  // namespace warploom::export_
