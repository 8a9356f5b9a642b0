// Launch lists on a processor with a named instruction set (target/instruction_set.h): their
// kernels and a driver become one program, by a compiler for that processor, which runs here or
// under QEMU's emulator of it.
//
//   const auto machine = test::OtherMachine::of("aarch64");
//   if (!machine) GTEST_SKIP() << describe(machine.error());   // what to install
//   std::vector<test::Bound> all = {{list, storage}};          // storage: every buffer, by name
//   machine->run(text, all);                                   // what they hold then
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "support/paths.h"
#include "target/instruction_set.h"

namespace warploom::test {
// A launch list and what its buffers hold, workspaces too.
struct Bound {
  LaunchList list;
  std::map<std::string, std::vector<std::byte>> storage;
};

class OtherMachine {
 public:
  // Fails with wrong-machine, and what would have to be installed.
  static Result<OtherMachine> of(const std::string& arch) {
    const target::InstructionSet& set = *target::instruction_set(arch);
    const target::InstructionSet& here = target::instruction_set_here();
    if (set.processor != here.processor) return emulated(set);
    if (set.vector_bytes > here.vector_bytes)
      return missing(arch, "a processor with " + std::string(set.vectors), std::string(here.name));
    return OtherMachine(set, "g++", "");
  }

  // `text`: of all kernels, whose names differ.
  Status run(const std::string& text, std::vector<Bound>& all,
             const std::vector<std::string>& flags = {"-O3"}) const {
    const ScratchFolder folder("other-machine");
    WARPLOOM_CHECK(write_file(folder.path() / "kernels.cpp", text + table_of(all)));
    WARPLOOM_CHECK(compile(folder.path(), flags));
    WARPLOOM_CHECK(write_file(folder.path() / "from", written(all)));
    std::vector<std::string> argv = {folder.path() / "program", folder.path() / "from",
                                     folder.path() / "to"};
    if (!emulator_.empty()) argv.insert(argv.begin(), emulator_);
    WARPLOOM_CHECK(succeeds(argv));
    WARPLOOM_TRY(const std::string bytes, read_file(folder.path() / "to"));
    return read(bytes, all);
  }

 private:
  OtherMachine(const target::InstructionSet& set, std::string compiler, std::string emulator)
      : set_(&set), compiler_(std::move(compiler)), emulator_(std::move(emulator)) {}

  static tl::unexpected<Error> missing(const std::string& arch, std::string expected,
                                       std::string found) {
    return fail({ErrorCode::kWrongMachine, "kernels of an instruction set cannot run here", arch,
                 std::move(expected), std::move(found),
                 "Debian: apt-get install --no-install-recommends qemu-user g++-aarch64-linux-gnu "
                 "(on an Arm: g++-x86-64-linux-gnu)"});
  }

  static Result<OtherMachine> emulated(const target::InstructionSet& set) {
    const bool is_arm = set.processor == target::Processor::aarch64;
    const std::string compiler = is_arm ? "aarch64-linux-gnu-g++" : "x86_64-linux-gnu-g++";
    const std::string emulator = is_arm ? "qemu-aarch64" : "qemu-x86_64";
    for (const std::string& program : {compiler, emulator})
      if (find_program(program).empty())
        return missing(std::string(set.name), compiler + " and " + emulator, "no " + program);
    return OtherMachine(set, compiler, emulator);
  }

  static Status succeeds(const std::vector<std::string>& argv) {
    WARPLOOM_TRY(const ProcessResult ran, run_process(argv, {.time = std::chrono::minutes(9)}));
    if (ran.succeeded()) return ok();
    const std::string how = ran.signal ? "signal " + std::to_string(ran.signal)
                                       : "exit status " + std::to_string(ran.exit_status);
    return fail({ErrorCode::kInternal, "a program for another machine failed", argv[0], "success",
                 how + ": " + ran.err.substr(0, 3000)});
  }

  // Statically, so that an emulator needs no libraries of the other processor.
  Status compile(const std::filesystem::path& folder, const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {compiler_, "-march=" + std::string(set_->march), "-std=c++20",
                                     "-ffp-contract=fast", "-fno-math-errno"};
    if (!set_->tuning.empty()) argv.emplace_back(set_->tuning);
    argv.insert(argv.end(), flags.begin(), flags.end());
    for (const char* include : {"device/cpu", "device/common", "tests/support"})
      argv.push_back("-I" + source_path(include));
    if (!emulator_.empty()) argv.emplace_back("-static");
    argv.insert(argv.end(), {folder / "kernels.cpp", "-o", folder / "program",
                             source_path("tests/support/kernel_driver/driver.cpp")});
    return succeeds(argv);
  }

  // The kernels' places in the driver's table, in the order of lists.
  static std::map<std::string, int64_t> places_of(const std::vector<Bound>& all) {
    std::map<std::string, int64_t> places;
    for (const Bound& one : all)
      for (const Kernel& kernel : one.list.kernels)
        places.emplace(kernel.name, static_cast<int64_t>(places.size()));
    return places;
  }

  static std::string table_of(const std::vector<Bound>& all) {
    std::vector<std::string> names(places_of(all).size());
    for (const auto& [name, place] : places_of(all))
      names[static_cast<size_t>(place)] = name;
    std::string out;
    for (const std::string& name : names)
      out += "extern \"C\" void " + name + "(void* const*, long long, void*);\n";
    out += "extern void (*const kKernels[])(void* const*, long long, void*);\n";
    out += "void (*const kKernels[])(void* const*, long long, void*) = {";
    for (const std::string& name : names)
      out += name + ", ";
    return out + "};\n";
  }

  static void put(std::string& out, int64_t number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  static std::string written(const std::vector<Bound>& all) {
    const auto places = places_of(all);
    std::string out;
    put(out, std::ssize(all));
    for (const Bound& one : all) {
      std::map<std::string, int64_t> numbers;
      put(out, std::ssize(one.storage));
      for (const auto& [name, bytes] : one.storage) {
        numbers.emplace(name, static_cast<int64_t>(numbers.size()));
        put(out, std::ssize(bytes));
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      put(out, std::ssize(one.list.kernels));
      for (const Kernel& kernel : one.list.kernels) {
        put(out, places.at(kernel.name));
        put(out, kernel.grid[0] * kernel.grid[1] * kernel.grid[2]);
        put(out, kernel.shared_bytes);
        put(out, std::ssize(kernel.args));
        for (const Argument& argument : kernel.args) {
          put(out, numbers.at(argument.buffer));
          put(out, argument.zeroed ? 1 : 0);
        }
      }
    }
    return out;
  }

  static Status read(const std::string& bytes, std::vector<Bound>& all) {
    size_t at = 0;
    for (Bound& one : all)
      for (auto& [name, buffer] : one.storage) {
        if (bytes.size() - at < buffer.size())
          return fail({ErrorCode::kInternal, "a driver's answer ends too early", name});
        if (!buffer.empty()) std::memcpy(buffer.data(), bytes.data() + at, buffer.size());
        at += buffer.size();
      }
    return ok();
  }

  const target::InstructionSet* set_;
  std::string compiler_;
  std::string emulator_;
};
}  // namespace warploom::test
