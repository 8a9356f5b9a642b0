// Archives that travel: what was found on one machine goes to another as one file.
//
//   WARPLOOM_TRY(const Travelled out, export_archive(archive, "found.wlx", ""));
//   WARPLOOM_TRY(const Travelled in, import_archive(another, "found.wlx"));
//   // in.candidates == out.candidates; another.best(key) is what it was before
//
// Imported records are foreign: a table of their own holds them, with the name of the file that
// brought them. They say where a search may begin and teach a policy; the search that begins there
// judges what it takes from them like anything else, so that nothing foreign wins unjudged.
//
// The file is gzip of lines of JSON: a head, a record a line, an end.
//
//   {"format": "warploom-archive", "version": 1, …}
//   {"kind": "problem", "record": {"key": "3f2a…", "name": "mm", …}, "~": "5f0d…"}
//   {"kind": "candidate", "record": {"problem": "3f2a…", "schedule": "…", …}, "~": "…"}
//   {"kind": "run", "record": {"problem": "3f2a…", "seconds": 20.1, …}, "~": "…"}
//   {"kind": "end", "records": 3, "hash": "…"}
//
// Each line ends with its hash (record.h), and the end has one over all lines, so that a record
// that was changed, left out or cut off is noticed. They say nothing of who wrote it: a file is
// judged by its form, its contents by the machine. What models were asked does not travel.
//
// Errors. Export: file-unwritable where a file is there already, disk-full. Import: file-missing,
// file-unreadable; archive-foreign for another kind of file; archive-version for one of another
// version; archive-damaged, with the line, for what is cut off, changed, or no such record: then
// nothing of the file is taken.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include "archive/archive.h"
#include "base/error.h"

namespace warploom::archive {
// How much of an archive went out or came in.
struct Travelled {
  size_t problems = 0;
  size_t candidates = 0;
  size_t runs = 0;
};

// What was judged here, of the problems whose keys begin with `key`; "": of all. What is foreign
// stays: whoever judged it can pass it on.
Result<Travelled> export_archive(Archive& from, const std::filesystem::path& path,
                                 const std::string& key);

Result<Travelled> import_archive(Archive& into, const std::filesystem::path& path);
}  // namespace warploom::archive
