#include "traindbg/compat/smdebug_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "traindbg/compat/smdebug_export.h"
#include "traindbg/compat/smdebug_import.h"
#include "traindbg/compat/smdebug_names.h"
#include "traindbg/format/smdebug_index.h"
#include "traindbg/reduce/reducer.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::compat {
namespace {

namespace fs = std::filesystem;
using model::ActivationKind;
using model::Role;
using storage::MemoryFileSystem;

const fs::path kGolden = fs::path(TRAINDBG_SOURCE_DIR) / "tests/data/smdebug";

base::ByteBuffer content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const base::ByteSpan bytes = base::as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

// A golden run as "/run" in memory, without the files that `leaves_out` says.
void copy_golden(const std::string& run, MemoryFileSystem& files,
                 const std::function<bool(const std::string&)>& leaves_out = {}) {
    for (const auto& entry : fs::recursive_directory_iterator(kGolden / run)) {
        if (!entry.is_regular_file()) continue;
        const std::string path = fs::relative(entry.path(), kGolden / run).string();
        if (leaves_out && leaves_out(path)) continue;
        const std::string full = "/run/" + path;
        ASSERT_TRUE(files.create_directories(full.substr(0, full.rfind('/'))).is_ok());
        files.set_content(full, content_of(entry.path()));
    }
}

struct Collected {
    model::WorkerId worker = 0;
    model::StepRecord record;
};

struct Source {
    std::unique_ptr<SmdebugSource> source;
    std::vector<Collected> steps;
    std::map<model::WorkerId, model::TensorTable> tensors;
    std::map<model::WorkerId, model::WorkerMeta> metas;

    // All that comes without waiting.
    void take() {
        while (true) {
            const auto view = source->next(std::chrono::nanoseconds(0));
            ASSERT_TRUE(view.is_ok()) << view.status().message();
            if (!*view) return;
            steps.push_back({(*view)->worker, *(*view)->record});
            tensors[(*view)->worker] = *(*view)->tensors;
            metas[(*view)->worker] = *(*view)->meta;
        }
    }
    const model::TensorInfo& info(std::string_view name, model::WorkerId worker = 0) {
        for (const model::TensorInfo& one : tensors[worker])
            if (one.name == name) return one;
        static const model::TensorInfo kNone;
        ADD_FAILURE() << name << " is missing";
        return kNone;
    }
};

Source open(storage::FileSystem& files, const std::string& path, bool with_raw = false) {
    Source out;
    auto opened = SmdebugSource::open(path, files, with_raw);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    out.source = std::move(opened).value();
    return out;
}

Source read_golden(const std::string& run, bool with_raw = false) {
    Source out = open(storage::posix_file_system(), (kGolden / run).string(), with_raw);
    out.source->finish_when_idle();
    out.take();
    EXPECT_TRUE(out.source->ended());
    return out;
}

TEST(SmdebugSourceTest, RolesAreToldFromCollectionsAndNames) {
    Source run = read_golden("torch_raw");
    struct Expected {
        const char* name;
        Role role;
        const char* module;
        ActivationKind activation = ActivationKind::kNone;
    };
    const std::vector<Expected> cases = {
        {"Net_first.weight", Role::kWeight, "first"},
        {"Net_second.bias", Role::kBias, "second"},
        {"gradient/Net_first.weight", Role::kGradient, "first"},
        {"gradient/Net_second.bias", Role::kGradient, "second"},
        {"CrossEntropyLoss_output_0", Role::kLoss, "CrossEntropyLoss"},
        {"CrossEntropyLoss_input_0", Role::kOther, "CrossEntropyLoss"},
        {"relu_output_0", Role::kActivation, "relu", ActivationKind::kRelu},
        {"relu_input_0", Role::kOther, "relu"},
        {"first_output_0", Role::kOutput, "first"},
        {"Net_input_0", Role::kInput, "Net"},
        {"Net_output_0", Role::kOutput, "Net"},
        {"scalar/rate", Role::kMetric, ""},
    };
    for (const Expected& one : cases) {
        const model::TensorInfo& info = run.info(one.name);
        EXPECT_EQ(info.role, one.role) << one.name;
        EXPECT_EQ(info.module, one.module) << one.name;
        EXPECT_EQ(info.activation, one.activation) << one.name;
    }
    // In the order of the forward pass, gradients beside their weights.
    EXPECT_LT(run.info("first_output_0").layer, run.info("relu_output_0").layer);
    EXPECT_LT(run.info("relu_output_0").layer, run.info("second_output_0").layer);
    EXPECT_EQ(run.info("gradient/Net_second.weight").layer, run.info("Net_second.weight").layer);
    EXPECT_EQ(run.info("Net_first.weight").shape, (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(run.metas[0].model_type, "Net");
}

TEST(SmdebugSourceTest, StepsKeepTheirModesAndOrder) {
    const Source run = read_golden("torch_raw");
    std::vector<std::pair<model::Mode, model::StepIndex>> steps;
    for (const Collected& step : run.steps) {
        EXPECT_EQ(step.record.sequence, steps.size());
        EXPECT_GT(step.record.wall_nanos, std::int64_t{1'600'000'000} * 1'000'000'000);
        steps.emplace_back(step.record.mode, step.record.step);
    }
    using model::Mode;
    const std::vector<std::pair<Mode, model::StepIndex>> expected = {
        {Mode::kTrain, 0}, {Mode::kTrain, 1}, {Mode::kEval, 0},   {Mode::kTrain, 2},
        {Mode::kTrain, 3}, {Mode::kEval, 1},  {Mode::kPredict, 0}};
    EXPECT_EQ(steps, expected);
}

TEST(SmdebugSourceTest, StatisticsAreThoseOfTheValues) {
    Source run = read_golden("torch_raw", true);
    std::size_t compared = 0;
    for (const Collected& step : run.steps) {
        for (const model::RawTensor& raw : step.record.raw) {
            const auto found = std::find_if(step.record.tensors.begin(), step.record.tensors.end(),
                                            [&](const auto& sample) { return sample.tensor == raw.tensor; });
            ASSERT_NE(found, step.record.tensors.end());
            const tensor::TensorView view{raw.bytes.data(), raw.dtype, raw.shape, {}};
            EXPECT_EQ(found->statistics, *reduce::statistics(view));
            ++compared;
        }
    }
    EXPECT_GT(compared, 80U);
    // A ReLU's units were looked at: 4 outputs each.
    const model::TensorId relu = run.info("relu_output_0").id;
    for (const model::TensorSample& sample : run.steps[0].record.tensors) {
        if (sample.tensor == relu) {
            EXPECT_EQ(sample.units.units, 4U);
        }
    }
}

TEST(SmdebugSourceTest, ReductionsGiveNearlyTheStatisticsOfTheValues) {
    // Both runs are the same training; the one saved values, the other reductions.
    Source values = read_golden("torch_raw");
    Source reductions = read_golden("torch_reductions");
    std::size_t compared = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_FALSE(reductions.steps[i].record.tensors.empty());
        for (const model::TensorSample& sample : reductions.steps[i].record.tensors) {
            const std::string& name = reductions.tensors[0][sample.tensor].name;
            const model::TensorId id = values.info(name).id;
            const auto& all = values.steps[i].record.tensors;
            const auto found =
                std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.tensor == id; });
            ASSERT_NE(found, all.end());
            const model::Statistics& a = sample.statistics;
            const model::Statistics& b = found->statistics;
            EXPECT_EQ(a.count, b.count) << name;
            const auto near = [&](double one, double other) {
                EXPECT_NEAR(one, other, 1e-5 * (std::abs(other) + 0.01)) << name;
            };
            near(a.min, b.min);
            near(a.max, b.max);
            near(a.mean, b.mean);
            near(a.std, b.std);
            near(a.l1, b.l1);
            near(a.l2, b.l2);
            ++compared;
        }
    }
    EXPECT_EQ(compared, 16U);
}

TEST(SmdebugSourceTest, WorkersKeepTheirNumbers) {
    Source run = read_golden("two_workers");
    std::map<model::WorkerId, std::size_t> steps;
    for (const Collected& step : run.steps) ++steps[step.worker];
    EXPECT_EQ(steps, (std::map<model::WorkerId, std::size_t>{{0, 4}, {1, 3}}));
    EXPECT_EQ(run.metas[1].worker, 1U);
    Source devices = read_golden("devices");
    EXPECT_EQ(devices.metas.size(), 2U);
    EXPECT_EQ(devices.metas[1].environment.back().second, "/job:worker/replica:0/task:0/device:GPU:1");
}

TEST(SmdebugSourceTest, WhatCannotBeAStepIsCounted) {
    const Source types = read_golden("dtypes");
    EXPECT_EQ(types.source->skips().texts, 1U);
    EXPECT_EQ(types.source->skips().types, 2U);  // complex
    const Source shapes = read_golden("torch_shapes");
    EXPECT_EQ(shapes.source->skips().shapes, 6U);
    EXPECT_EQ(shapes.source->run().damage().size(), 0U);
}

TEST(SmdebugSourceTest, AGrowingRunIsFollowedToItsEnd) {
    MemoryFileSystem files;
    const auto is_late = [](const std::string& path) {
        return path.find("000000000005_") != std::string::npos ||
               path.find("000000000006_") != std::string::npos || path == format::kSmdebugEndMarker;
    };
    copy_golden("torch_raw", files, is_late);
    Source run = open(files, "/run");
    run.take();
    EXPECT_EQ(run.steps.size(), 5U);
    EXPECT_FALSE(run.source->ended());
    copy_golden("torch_raw", files);
    run.take();
    EXPECT_EQ(run.steps.size(), 7U);
    EXPECT_TRUE(run.source->ended());
    EXPECT_EQ(run.source->skips().late, 0U);
}

TEST(SmdebugSourceTest, AStepThatComesTooLateIsCounted) {
    MemoryFileSystem files;
    copy_golden("torch_raw", files, [](const std::string& path) {
        return path.find("000000000002_") != std::string::npos || path == format::kSmdebugEndMarker;
    });
    Source run = open(files, "/run");
    run.take();
    EXPECT_EQ(run.steps.size(), 6U);
    copy_golden("torch_raw", files);
    run.take();
    EXPECT_EQ(run.steps.size(), 6U);
    EXPECT_TRUE(run.source->ended());
    EXPECT_EQ(run.source->skips().late, 1U);
}

TEST(SmdebugSourceTest, AnUnfinishedStepOfADeadTrainingIsNotThere) {
    Source run = read_golden("torch_crash");
    EXPECT_EQ(run.steps.size(), 6U);
    EXPECT_FALSE(run.source->run().is_complete());
    EXPECT_TRUE(run.source->run().damage().empty());
}

// What a run gives with one file changed.
struct Damaged {
    MemoryFileSystem files;
    Source run;
};

void read_damaged(Damaged& out, const std::string& path,
                  const std::function<void(base::ByteBuffer&)>& change) {
    copy_golden("torch_raw", out.files);
    if (change) {
        base::ByteBuffer bytes = out.files.content("/run/" + path);
        ASSERT_FALSE(bytes.empty());
        change(bytes);
        out.files.set_content("/run/" + path, bytes);
    } else {
        ASSERT_TRUE(out.files.remove("/run/" + path).is_ok());
    }
    out.run = open(out.files, "/run");
    out.run.source->finish_when_idle();
    out.run.take();
    EXPECT_TRUE(out.run.source->ended());
}

const std::string kEvents3 = "events/000000000003/000000000003_worker_0.tfevents";
const std::string kIndex3 = "index/000000000/000000000003_worker_0.json";

TEST(SmdebugDamageTest, AMissingEventFileIsNamedOnceAndTheRestIsRead) {
    Damaged run;
    read_damaged(run, kEvents3, nullptr);
    EXPECT_EQ(run.run.steps.size(), 7U);
    EXPECT_TRUE(run.run.steps[3].record.empty());
    EXPECT_FALSE(run.run.steps[4].record.empty());
    const auto& damage = run.run.source->run().damage();
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_EQ(damage[0].file, kEvents3);
    EXPECT_EQ(damage[0].what, "the event file is missing");
}

TEST(SmdebugDamageTest, ACutEventFileLosesWhatWasBehindTheCut) {
    Damaged run;
    read_damaged(run, kEvents3, [](base::ByteBuffer& bytes) { bytes.resize(400); });
    ASSERT_EQ(run.run.steps.size(), 7U);
    EXPECT_EQ(run.run.steps[3].record.tensors.size(), 2U);  // 184 + 122 bytes, then the cut
    const auto& damage = run.run.source->run().damage();
    ASSERT_EQ(damage.size(), 18U);  // of 20
    EXPECT_EQ(damage[0].what, "the event file ends before it");
    EXPECT_EQ(damage[0].offset, 306U);
}

TEST(SmdebugDamageTest, ADamagedRecordIsLostAlone) {
    Damaged run;
    read_damaged(run, kEvents3, [](base::ByteBuffer& bytes) { bytes[184] ^= std::byte{1}; });
    const auto& damage = run.run.source->run().damage();
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_EQ(damage[0].offset, 184U);
    EXPECT_EQ(damage[0].what, "the checksum of a record's length does not match");
    const std::size_t whole = run.run.steps[1].record.tensors.size();
    EXPECT_EQ(run.run.steps[3].record.tensors.size() + 1, whole);
}

TEST(SmdebugDamageTest, ADamagedIndexLosesItsStepUntilItIsWhole) {
    Damaged run;
    read_damaged(run, kIndex3, [](base::ByteBuffer& bytes) { bytes.resize(bytes.size() / 2); });
    EXPECT_EQ(run.run.steps.size(), 6U);
    const auto& damage = run.run.source->run().damage();
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_EQ(damage[0].file, kIndex3);
    EXPECT_EQ(damage[0].what, "is not JSON");

    auto reader = SmdebugRun::open("/run", run.files);
    ASSERT_TRUE(reader.is_ok());
    EXPECT_EQ((*reader)->steps().size(), 6U);
    copy_golden("torch_raw", run.files);
    ASSERT_TRUE((*reader)->refresh().is_ok());
    EXPECT_EQ((*reader)->steps().size(), 7U);
    EXPECT_TRUE((*reader)->damage().empty());
}

TEST(SmdebugDamageTest, DamagedCollectionsCostTheRolesNotTheValues) {
    Damaged run;
    read_damaged(run, "collections/000000000/worker_0_collections.json",
                 [](base::ByteBuffer& bytes) { bytes[0] = std::byte{'x'}; });
    EXPECT_EQ(run.run.steps.size(), 7U);
    EXPECT_EQ(run.run.source->run().damage().size(), 1U);
    EXPECT_EQ(run.run.info("CrossEntropyLoss_output_0").role, Role::kLoss);  // by its name
}

TEST(SmdebugDamageTest, AnIndexThatPointsOutsideIsDamage) {
    MemoryFileSystem files;
    copy_golden("torch_raw", files);
    files.set_content("/secret", content_of(kGolden / "torch_raw" / kEvents3));
    std::string text;
    for (const std::byte byte : files.content("/run/" + kIndex3)) text += static_cast<char>(byte);
    text.replace(text.find(kEvents3), kEvents3.size(), "../secret");
    const base::ByteSpan bytes = base::as_bytes(text);
    files.set_content("/run/" + kIndex3, {bytes.begin(), bytes.end()});
    auto run = SmdebugRun::open("/run", files);
    ASSERT_TRUE(run.is_ok());
    EXPECT_EQ((*run)->steps().size(), 6U);
    ASSERT_EQ((*run)->damage().size(), 1U);
    EXPECT_EQ((*run)->damage()[0].what, "names an event file outside of the run");
}

TEST(SmdebugRunTest, OtherDirectoriesAreRefusedWithAHint) {
    const auto run = SmdebugRun::open(std::string(TRAINDBG_SOURCE_DIR) + "/tests/data/golden/native_v1");
    EXPECT_EQ(run.status().code(), base::Code::kNotFound);
    EXPECT_NE(run.status().message().find("out_dir"), std::string::npos);
}

TEST(SmdebugImportTest, AnImportedRunHasTheStepsOfItsSource) {
    for (const char* name : {"torch_raw", "torch_reductions", "two_workers", "dtypes", "torch_diverging"}) {
        Source source = read_golden(name, true);
        MemoryFileSystem files;
        copy_golden(name, files);
        ASSERT_TRUE(files.create_directories("/ours").is_ok());
        ASSERT_TRUE(files.put_atomic("/ours/RUN.json", base::as_bytes("{}")).is_ok());
        SmdebugImport job;
        job.from = "/run";
        job.run_directory = "/ours";
        std::uint64_t told = 0;
        job.progress = [&](std::uint64_t done, std::uint64_t all) {
            EXPECT_EQ(done, ++told);
            EXPECT_EQ(all, source.steps.size());
        };
        const auto done = import_smdebug(job, files);
        ASSERT_TRUE(done.is_ok()) << done.status().message();
        EXPECT_EQ(done->steps, source.steps.size());
        EXPECT_EQ(told, source.steps.size());
        EXPECT_TRUE(done->is_complete);

        auto run = read::Run::open("/ours", files);
        ASSERT_TRUE(run.is_ok()) << run.status().message();
        EXPECT_TRUE((*run)->is_complete());
        std::size_t seen = 0;
        ASSERT_TRUE((*run)
                        ->for_each_step(
                            [&](const model::StepView& view) {
                                const auto wanted = std::find_if(
                                    source.steps.begin(), source.steps.end(), [&](const Collected& step) {
                                        return step.worker == view.worker &&
                                               step.record.sequence == view.record->sequence;
                                    });
                                EXPECT_NE(wanted, source.steps.end());
                                if (wanted == source.steps.end()) return false;
                                EXPECT_EQ(view.record->mode, wanted->record.mode);
                                EXPECT_EQ(view.record->step, wanted->record.step);
                                EXPECT_EQ(view.record->tensors.size(), wanted->record.tensors.size());
                                EXPECT_EQ(view.record->scalars.size(), wanted->record.scalars.size());
                                EXPECT_EQ(view.record->raw.size(), wanted->record.raw.size());
                                for (std::size_t i = 0; i < view.record->raw.size(); ++i)
                                    EXPECT_EQ(view.record->raw[i], wanted->record.raw[i]);
                                ++seen;
                                return true;
                            },
                            true)
                        .is_ok());
        EXPECT_EQ(seen, source.steps.size()) << name;
        EXPECT_EQ((*run)->tensors(0), source.tensors[0]);
    }
}

// Imports a golden run and exports it to "/out".
void import_and_export(const std::string& name, MemoryFileSystem& files, SmdebugExport job,
                       SmdebugExported* counts = nullptr) {
    copy_golden(name, files);
    ASSERT_TRUE(files.create_directories("/ours").is_ok());
    ASSERT_TRUE(files.put_atomic("/ours/RUN.json", base::as_bytes("{}")).is_ok());
    SmdebugImport imported;
    imported.from = "/run";
    imported.run_directory = "/ours";
    ASSERT_TRUE(import_smdebug(imported, files).is_ok());
    auto run = read::Run::open("/ours", files);
    ASSERT_TRUE(run.is_ok());
    job.to = "/out";
    const auto done = export_smdebug(**run, job, files);
    ASSERT_TRUE(done.is_ok()) << done.status().message();
    if (counts != nullptr) *counts = *done;
}

TEST(SmdebugExportTest, WhatWasExportedIsReadBack) {
    MemoryFileSystem files;
    SmdebugExported counts;
    import_and_export("torch_raw", files, {}, &counts);
    auto before = SmdebugRun::open("/run", files);
    auto after = SmdebugRun::open("/out", files);
    ASSERT_TRUE(before.is_ok() && after.is_ok());
    EXPECT_TRUE((*after)->is_complete());
    EXPECT_TRUE((*after)->damage().empty());
    EXPECT_EQ((*after)->steps(), (*before)->steps());
    EXPECT_EQ((*after)->tensor_names(), (*before)->tensor_names());
    EXPECT_EQ((*after)->workers(), (*before)->workers());
    EXPECT_EQ(counts.steps, 7U);
    EXPECT_EQ(counts.workers, 1U);
    std::size_t values = 0;
    for (const SmdebugStep& step : (*before)->steps()) {
        for (const SmdebugSample& sample : (*before)->samples("worker_0", step.global_step)) {
            const auto wanted = (*before)->value("worker_0", step.global_step, sample.name);
            const auto found = (*after)->value("worker_0", step.global_step, sample.name);
            ASSERT_TRUE(wanted.is_ok() && found.is_ok()) << sample.name;
            if (wanted->number()) {
                EXPECT_EQ(found->number(), wanted->number()) << sample.name;
            } else {
                EXPECT_EQ(found->bytes, wanted->bytes) << sample.name;
                EXPECT_EQ(found->shape, wanted->shape) << sample.name;
            }
            EXPECT_NEAR(found->wall_seconds, wanted->wall_seconds, 60);
            ++values;
        }
    }
    EXPECT_GT(values, 100U);
}

TEST(SmdebugExportTest, ASelectionIsExportedAlone) {
    MemoryFileSystem files;
    SmdebugExport job;
    job.with_values = false;
    job.selects_tensor = [](const model::TensorInfo& info) { return info.role == Role::kGradient; };
    job.selects_step = [](model::WorkerId, model::Mode mode, model::StepIndex step) {
        return mode == model::Mode::kTrain && step >= 2;
    };
    SmdebugExported counts;
    import_and_export("torch_raw", files, job, &counts);
    auto run = SmdebugRun::open("/out", files);
    ASSERT_TRUE(run.is_ok());
    EXPECT_EQ(counts.steps, 2U);
    EXPECT_EQ(counts.records, 2U * 4 * 10);
    EXPECT_EQ((*run)->tensor_names(),
              (std::vector<std::string>{"gradient/Net_first.bias", "gradient/Net_first.weight",
                                        "gradient/Net_second.bias", "gradient/Net_second.weight"}));
    const std::vector<SmdebugStep> steps = (*run)->steps();
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].mode_step, 2U);
    for (const SmdebugSample& sample : (*run)->samples("worker_0", steps[0].global_step)) {
        EXPECT_FALSE(sample.has_value);
        EXPECT_EQ(sample.reductions.size(), 10U);
        ASSERT_NE(sample.shape, nullptr);  // so that a reader knows the number of elements
    }
}

TEST(SmdebugExportTest, NothingIsOverwritten) {
    MemoryFileSystem files;
    import_and_export("two_workers", files, {});
    auto run = read::Run::open("/ours", files);
    ASSERT_TRUE(run.is_ok());
    SmdebugExport job;
    job.to = "/out";
    EXPECT_EQ(export_smdebug(**run, job, files).status().code(), base::Code::kAlreadyExists);
}

}  // namespace
}  // namespace traindbg::compat
