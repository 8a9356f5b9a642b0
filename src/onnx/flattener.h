// The work of flatten.h: one node after another, put where the model says, under names that no
// other tensor has. Private to the room.
//
//   flatten.cpp            branches, and how a body is put
//   flatten_functions.cpp  calls of functions
//   flatten_loops.cpp      Loop, Scan and SequenceMap, a body once for each step
//   flatten_sequences.cpp  sequences and optionals, of which nothing is left but their tensors
#pragma once
#include <onnx/onnx.pb.h>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "base/fresh_names.h"
#include "graph/graph.h"
#include "onnx/flatten.h"
#include "onnx/model.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
using Names = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

// What a function of the model is found by.
struct FunctionKey {
  std::string domain;
  std::string name;
  std::string overload;
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;

  std::string text() const;
};

// How a body's nodes are written where they are put: other names, and attributes in the place of
// references to the call's.
struct Renaming {
  Names names;
  const std::map<std::string, const onnx::AttributeProto*>* attributes = nullptr;

  std::string of(const std::string& name) const;
};

std::string plain_domain(const std::string& domain);
std::string name_of(const onnx::NodeProto& node);
void rename_node(onnx::NodeProto& node, const Renaming& how);
const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name);
int64_t integer_of(const onnx::NodeProto& node, std::string_view name, int64_t otherwise);
std::vector<int64_t> integers_of(const onnx::NodeProto& node, std::string_view name);

// A model while it becomes a list of plain nodes.
class Flattener {
 public:
  Flattener(const onnx::ModelProto& model, int64_t opset, const Source& source, FlatModel& flat,
            Knowledge& known);
  Status run();

 private:
  using Work = Status (Flattener::*)(const VersionedNode& node);

  struct OwnNode {  // of the default domain, for which no node stays as it is
    std::string_view op;
    Work work;
  };

  static const OwnNode kOwnNodes[];

  std::string at(const onnx::NodeProto& node) const;

  std::string fresh(const std::string& wanted) { return names_.fresh(wanted, "/"); }

  // Counts work that leaves no node behind, too: bodies within bodies that only pass things on.
  Status count_work(int64_t steps = 1);
  Status add(VersionedNode node);
  // A node of the newest operator set; the name of what it makes.
  Result<std::string> make(std::string_view op, const Texts& inputs, const std::string& wanted,
                           const std::vector<onnx::AttributeProto>& attributes = {});
  Status make_as(const std::string& output, std::string_view op, const Texts& inputs,
                 const std::vector<onnx::AttributeProto>& attributes = {});
  // Tensors, joined along an axis; `stacked`: along a new one.
  Result<std::string> joined(const onnx::NodeProto& of, Texts parts, int64_t axis, bool stacked);
  // Another name of a tensor, a sequence or an optional.
  Status alias(const std::string& from, const std::string& to);

  // What is known of a tensor.
  Result<std::optional<bool>> truth(const std::string& name);
  Result<std::optional<std::vector<int64_t>>> integers(const std::string& name);
  Result<graph::Shape> shape(const onnx::NodeProto& of, const std::string& name);
  tl::unexpected<Error> refused(const onnx::NodeProto& node, ErrorCode code, std::string message,
                                std::string expected, std::string found,
                                std::string remedy = {}) const;
  // `message` says what depends on the inputs.
  tl::unexpected<Error> undecided(const onnx::NodeProto& node, std::string message,
                                  const std::string& name) const;

  Result<std::map<std::string, const onnx::AttributeProto*>> attributes_of(
      const onnx::NodeProto& node, const onnx::FunctionProto& function) const;
  Result<int64_t> opset_of(const onnx::FunctionProto& function) const;
  Status check_call(const onnx::NodeProto& node, const FunctionKey& key,
                    const onnx::FunctionProto& function) const;
  void name_within(const std::string& prefix, const std::string& name, Renaming& how);
  Status call(const onnx::NodeProto& node, const FunctionKey& key,
              const onnx::FunctionProto& function);
  Result<const onnx::GraphProto*> body_of(const onnx::NodeProto& node, std::string_view name) const;
  Status take_branch(const VersionedNode& node);
  Status put_branch(const VersionedNode& node, const onnx::GraphProto& branch);
  Status put_nodes(const std::string& prefix, const onnx::GraphProto& graph, int64_t opset,
                   Renaming& how);
  // A body whose inputs are these; what its outputs are called.
  Result<Texts> put_body(const VersionedNode& node, const onnx::GraphProto& body,
                         const std::string& prefix, const Texts& inputs);

  Status check_body(const onnx::NodeProto& node, const onnx::GraphProto& body, int inputs,
                    int least_outputs) const;
  Result<std::optional<int64_t>> most_steps(const onnx::NodeProto& loop);
  Result<bool> goes_on(const onnx::NodeProto& loop, const std::string& condition);
  Result<Texts> step_inputs(int64_t number, const std::string& condition,
                            const std::string& prefix);
  Status unroll_loop(const VersionedNode& node);
  Result<int64_t> steps_of(const onnx::NodeProto& scan, std::span<const std::string> scanned,
                           const std::vector<int64_t>& axes);
  Result<std::string> taken(const std::string& tensor, int64_t place, int64_t axis,
                            const std::string& wanted);
  Status unroll_scan(const VersionedNode& node);
  Result<VersionedNode> scan_of_entry(const onnx::NodeProto& scan, int64_t b);
  Status unroll_old_scan(const VersionedNode& node);
  Status finish_steps(const onnx::NodeProto& node, const onnx::GraphProto& body, const Texts& state,
                      const std::vector<Texts>& made, int first_body_output);
  Status map_sequence(const VersionedNode& node);

  Status refuse_bundles(const onnx::NodeProto& node) const;
  Result<const Texts*> sequence(const onnx::NodeProto& node, int input) const;
  Result<size_t> position(const onnx::NodeProto& node, int input, size_t count, bool may_be_end);
  Status sequence_construct(const VersionedNode& node);
  Status sequence_at(const VersionedNode& node);
  Status sequence_insert(const VersionedNode& node);
  Status sequence_erase(const VersionedNode& node);
  Status sequence_length(const VersionedNode& node);
  Result<std::vector<int64_t>> split_sizes(const onnx::NodeProto& node, int64_t size);
  Status split_to_sequence(const VersionedNode& node);
  Status concat_from_sequence(const VersionedNode& node);
  Status optional(const VersionedNode& node);
  Status optional_has_element(const VersionedNode& node);
  Status optional_get_element(const VersionedNode& node);

  const onnx::ModelProto& model_;
  int64_t opset_;
  const Source& source_;
  FlatModel& flat_;
  Knowledge& known_;
  std::map<FunctionKey, const onnx::FunctionProto*> functions_;
  FreshNames names_;  // of tensors
  int64_t work_ = 0;  // count_work()
  std::vector<FunctionKey> calls_;
  std::map<std::string, Texts> sequences_;                       // their tensors
  std::map<std::string, std::optional<std::string>> optionals_;  // what is in them
};
}  // namespace warploom::onnx_import
