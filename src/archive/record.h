// The text of a record, as a table of the archive keeps it: JSON that ends with a hash of all
// before it, since SQLite does not notice a text that a disk has changed. Within the room only.
//
//   const std::string text = sealed_text({{"key", "00aa"}});  // {"key":"00aa","~":"5f0d…"}
//   is_changed(text);                                         // false
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace warploom::archive {
// The tables that hold records.
inline constexpr const char* kTables[] = {"problems", "candidates", "runs"};

// The field that holds the hash, the last one.
inline constexpr const char* kSeal = "~";

// JSON has no infinity, and texts from compilers may hold bytes that are no UTF-8; neither stops a
// record.
std::string sealed_text(nlohmann::json record);

// Whether a text differs from what was sealed. Records of old versions have no hash that would say
// so: false.
bool is_changed(std::string_view text);
}  // namespace warploom::archive
