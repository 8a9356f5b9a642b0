// Delivery: a bundle's files are proven and put where the user wants them.
//
//   WARPLOOM_CHECK(may_deliver("out/conv"));                 // before the search
//   WARPLOOM_TRY(const Delivered done, deliver("out/conv", files, Engine::cpu));
//   done.notes                                               // what could not be proven here
//
// Nothing is called a success that a user cannot build: the files are written to a folder beside
// the one that is named, its own `make check` is run there, by the Makefile's own command, as a
// child process under a clock, and only then the folder takes its place. Where a machine has no
// make, no nvcc or no GPU for it, `notes` say so.
//
// Kernels that this program did not write are judged shut in (verify/cell.h), and the check of a
// bundle runs them with the user's rights: it is left to the user, who is told so.
//
// A clock may end building and running: what was not done by then `notes` say as well, and the
// bundle is delivered as it is.
//
// Nothing of the user's is overwritten: what is replaced must be missing, empty, or an earlier
// bundle (of whatever model) with no file that was changed or added since, which its plan.json
// knows by hashes. It is replaced as a whole, so that nothing of an earlier one is left.
//
// Errors: folder-not-ours, bundle-not-built, bundle-check-failed, file-unwritable, disk-full.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include "codegen/launch_list.h"

namespace warploom::export_ {
struct BundleFile {
  std::string path;  // below the bundle's folder
  std::string text;
};

struct Delivered {
  std::vector<std::string> notes;
};

// Whether a bundle may be put there; fine where nothing is.
Status may_deliver(const std::filesystem::path& folder);

// When the proof has to end; nothing: when it is done.
using Until = std::optional<std::chrono::steady_clock::time_point>;

Result<Delivered> deliver(const std::filesystem::path& folder, const std::vector<BundleFile>& files,
                          Engine engine, const Until& until = {}, bool foreign = false);

// The part of it that builds and runs a bundle where it lies. Leaves the folder as it was.
Result<Delivered> prove(const std::filesystem::path& folder, Engine engine,
                        const Until& until = {});
}  // namespace warploom::export_
