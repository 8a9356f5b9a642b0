// KernelConfig: every choice for one region, typed.
//
// A family declares its choices once, in a table config/FAMILY.def with a row a field (type, name,
// default, meaning, names in earlier versions). From the table come a struct with those members
// (configs.h) and a ConfigType, which says the same at run time: so that search, archive, command
// line and policies read and set fields without knowing the struct.
//
//   KernelConfig config = MatmulWgmmaConfig{.block_m = 256, .scheduler = Scheduler::stream_k};
//   config.as<MatmulWgmmaConfig>().block_m                     // 256, by the family itself
//   config.text()     // "matmul_wgmma block_m=256 … scheduler=stream_k …", the archive's key
//   config.set("stages", 3)                // true: the family has such a field
//   config.get("scheduler")                // 2: fields as numbers, 2 is stream_k
//
// A field is an integer, a flag (0 or 1) or one of an enum's words, whose number is the
// enumerator's. Reading texts and JSON, old ones too: reader.h.
#pragma once
#include <any>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warploom::kernels {
using Words = std::span<const std::string_view>;
// An enum's words by its enumerators' numbers; none for other types.
template <class T> inline constexpr Words kWords{};

// One row of a family's table.
struct FieldInfo {
  std::string_view name;
  std::string_view aliases;  // names in earlier versions, with spaces between
  std::string_view meaning;  // one sentence, units included
  bool required = false;     // texts must give it; others take their default
  Words words = {};          // of an enum
  int64_t (*get)(const std::any& config) = nullptr;
  void (*set)(std::any& config, int64_t value) = nullptr;

  // "128", or the word of an enum's number.
  std::string text_of(int64_t value) const;
  // The same as JSON: a number, or a word.
  nlohmann::json json_of(int64_t value) const;
  // The number that a text means; nothing where it is neither a number nor one of the words.
  std::optional<int64_t> value_of(std::string_view text) const;
};

// A family's table.
struct ConfigType {
  std::string_view family;
  std::any defaults;  // the struct
  std::vector<FieldInfo> fields;

  // The field of that name, today's or an earlier one.
  std::optional<size_t> find(std::string_view name) const;
  std::vector<std::string> names() const;
};

// A struct made of a table.
template <class T>
concept Config = requires {
  { T::type() } -> std::same_as<const ConfigType&>;
};

class KernelConfig {
 public:
  KernelConfig() = default;  // of no family

  explicit KernelConfig(const ConfigType& type) : type_(&type), value_(type.defaults) {}

  template <Config T> KernelConfig(const T& config) : type_(&T::type()), value_(config) {}

  // The struct. The caller knows its family: another one's is an error of the program.
  template <Config T> const T& as() const { return std::any_cast<const T&>(value_); }

  const ConfigType* type() const { return type_; }  // null where it is of no family

  std::string family() const { return type_ ? std::string(type_->family) : ""; }

  size_t size() const { return type_ ? type_->fields.size() : 0; }  // fields

  const FieldInfo& field(size_t index) const { return type_->fields[index]; }

  int64_t get(size_t index) const { return field(index).get(value_); }

  void set(size_t index, int64_t value) { field(index).set(value_, value); }

  // By a name, today's or an earlier one; nothing, or false, where the family has no such field.
  std::optional<int64_t> get(std::string_view name) const;
  [[nodiscard]] bool set(std::string_view name, int64_t value);

  // "matmul_wgmma block_m=128 block_n=256 …": every field in the table's order. Stable: the key of
  // archives.
  std::string text() const;
  uint64_t hash() const;

  friend bool operator==(const KernelConfig& a, const KernelConfig& b);

 private:
  const ConfigType* type_ = nullptr;
  std::any value_;
};

nlohmann::json to_json(const KernelConfig& config);
}  // namespace warploom::kernels
