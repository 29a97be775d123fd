// Definitions of the settings: those for users, those of the service, and a knob for each technique
// of the papers, which is a developer option. machine.cpp finds the machine's values where a
// setting is 0; engine/request/request.h explains the knobs.
#include "pg/settings.h"

#include "pg/compat.h"
#include "pg/machine.h"

extern "C" {
#include "utils/varlena.h"
}

namespace gpujoin {
namespace {

constexpr int kMaxThreads = 16;
constexpr int kMaxServiceThreads = 1024;
constexpr int kMaxDevices = 1024;
constexpr int kMaxThreadsPerPoint = 32;
constexpr int kMaxStreams = 16;

int engine = static_cast<int>(EnginePreference::kAuto);
char* devices = nullptr;
DeviceNumbers device_list;
bool enable_customscan = true;
bool prefer_node = false;
int warn_missed = static_cast<int>(MissReport::kOff);
int cpu_threads = 0;
int host_memory_limit = 0;    // kB
int device_memory_limit = 0;  // kB
int service = static_cast<int>(ServicePreference::kAuto);
int service_thread_count = 0;
int service_join_memory = 0;  // kB
int log_min_duration_ms = -1;
int table_memory = -1;                      // kB
int device_table_memory = 4 * 1024 * 1024;  // kB
int index_method = static_cast<int>(IndexMethod::kAuto);
int indexed_dimensions = 0;
int reference_points = 0;
int reference_placement = static_cast<int>(ReferencePlacement::kAuto);
int reorder_dimensions = static_cast<int>(Switch::kAuto);
int sort_unindexed = static_cast<int>(Switch::kAuto);
int short_circuit = static_cast<int>(Switch::kAuto);
int access_pattern = static_cast<int>(AccessPattern::kAuto);
int cell_order = static_cast<int>(CellOrder::kAuto);
int work_order = static_cast<int>(WorkOrder::kAuto);
int threads_per_point = 0;
int streams = 0;
int share_devices = static_cast<int>(Switch::kAuto);
int batch_pairs = 0;
int topk_method = static_cast<int>(TopkMethod::kAuto);
int box_method = static_cast<int>(BoxMethod::kAuto);

template <class E>
constexpr config_enum_entry entry(const char* name, E value) {
  return {name, static_cast<int>(value), false};
}

constexpr config_enum_entry kEnd = {nullptr, 0, false};

const config_enum_entry kEngines[] = {entry("auto", EnginePreference::kAuto),
                                      entry("cuda", EnginePreference::kCuda),
                                      entry("cpu", EnginePreference::kCpu), kEnd};
const config_enum_entry kServicePreferences[] = {entry("auto", ServicePreference::kAuto),
                                                 entry("on", ServicePreference::kOn),
                                                 entry("off", ServicePreference::kOff), kEnd};
const config_enum_entry kMissReports[] = {entry("off", MissReport::kOff),
                                          entry("notice", MissReport::kNotice),
                                          entry("log", MissReport::kLog), kEnd};
const config_enum_entry kSwitches[] = {entry("auto", Switch::kAuto), entry("on", Switch::kOn),
                                       entry("off", Switch::kOff), kEnd};
const config_enum_entry kIndexMethods[] = {entry("auto", IndexMethod::kAuto),
                                           entry("grid", IndexMethod::kGrid),
                                           entry("reference_points", IndexMethod::kReferencePoints),
                                           entry("tiles", IndexMethod::kTiles),
                                           entry("none", IndexMethod::kNone),
                                           entry("pigeonhole", IndexMethod::kPigeonhole),
                                           kEnd};
const config_enum_entry kReferencePlacements[] = {entry("auto", ReferencePlacement::kAuto),
                                                  entry("outer", ReferencePlacement::kOuter),
                                                  entry("inner", ReferencePlacement::kInner), kEnd};
const config_enum_entry kAccessPatterns[] = {
    entry("auto", AccessPattern::kAuto), entry("full", AccessPattern::kFull),
    entry("linear_id", AccessPattern::kLinearId), entry("unicomp", AccessPattern::kUnicomp), kEnd};
const config_enum_entry kCellOrders[] = {
    entry("auto", CellOrder::kAuto), entry("linear", CellOrder::kLinear),
    entry("zorder", CellOrder::kZOrder), entry("hilbert", CellOrder::kHilbert), kEnd};

const config_enum_entry kWorkOrders[] = {
    entry("auto", WorkOrder::kAuto), entry("none", WorkOrder::kNone),
    entry("sorted", WorkOrder::kSorted), entry("queue", WorkOrder::kQueue), kEnd};

const config_enum_entry kTopkMethods[] = {
    entry("auto", TopkMethod::kAuto), entry("threshold", TopkMethod::kThreshold),
    entry("heap", TopkMethod::kHeap), entry("sort", TopkMethod::kSort), kEnd};
const config_enum_entry kBoxMethods[] = {
    entry("auto", BoxMethod::kAuto), entry("layered_grid", BoxMethod::kLayeredGrid),
    entry("sort_sweep", BoxMethod::kSortSweep), entry("none", BoxMethod::kNone), kEnd};

/// GucIntCheckHook: threads that share a point are a power of two.
bool check_threads_per_point(int* value, void**, GucSource) {
  if ((*value & (*value - 1)) == 0) return true;
  GUC_check_errdetail("%d is not a power of two.", *value);
  return false;
}

/// Reads "all" or numbers between commas.
bool parse_devices(const char* text, DeviceNumbers* numbers) {
  *numbers = {};
  numbers->count = 0;
  char* const copy = pstrdup(text);
  List* names = NIL;
  bool good = SplitGUCList(copy, ',', &names) && names != NIL;
  const bool all = good && list_length(names) == 1 &&
                   pg_strcasecmp(static_cast<char*>(linitial(names)), "all") == 0;
  for (int i = 0; good && !all && i < list_length(names); ++i) {
    const auto* const name = static_cast<const char*>(list_nth(names, i));
    char* end = nullptr;
    errno = 0;
    const long number = strtol(name, &end, 10);
    good = end != name && *end == '\0' && errno == 0 && number >= 0 && number < kMaxDevices &&
           numbers->count < kMostDevices;
    for (std::uint32_t other = 0; good && other < numbers->count; ++other)
      good = numbers->number[other] != number;
    if (good) numbers->number[numbers->count++] = static_cast<std::int32_t>(number);
  }
  list_free(names);
  pfree(copy);
  return good;
}

/// GucStringCheckHook; *extra becomes what the text means.
bool check_devices(char** value, void** extra, GucSource) {
  DeviceNumbers numbers;
  if (!parse_devices(*value, &numbers)) {
    GUC_check_errdetail("It is not \"all\", nor a list of up to %u different numbers below %d.",
                        kMostDevices, kMaxDevices);
    GUC_check_errhint("gpu_devices() lists the devices.");
    return false;
  }
  *extra = setting_memory(sizeof numbers);
  if (*extra == nullptr) return false;
  memcpy(*extra, &numbers, sizeof numbers);
  return true;
}

void assign_devices(const char*, void* extra) { memcpy(&device_list, extra, sizeof device_list); }

/// What settings have in common: where pg_settings lists them, who may set them, and their flags.
struct Kind {
  config_group group;
  GucContext who;
  int flags;
};

// The bounds on threads and memory are the administrator's: only a superuser raises them.
constexpr Kind kMethod{QUERY_TUNING_METHOD, PGC_USERSET, GUC_EXPLAIN};
constexpr Kind kPlanning{QUERY_TUNING_OTHER, PGC_USERSET, GUC_EXPLAIN};
constexpr Kind kMemory{RESOURCES_MEM, PGC_SUSET, GUC_EXPLAIN | GUC_UNIT_KB};
constexpr Kind kWorkers{kWorkersGroup, PGC_SUSET, GUC_EXPLAIN};
// What the service may use is the server's: its configuration file says so.
constexpr Kind kServiceMemory{RESOURCES_MEM, PGC_SIGHUP, GUC_UNIT_KB};
constexpr Kind kLogging{LOGGING_WHEN, PGC_SUSET, GUC_UNIT_MS};
constexpr Kind kServiceWorkers{kWorkersGroup, PGC_SIGHUP, 0};
constexpr Kind kKnob{DEVELOPER_OPTIONS, PGC_USERSET, GUC_EXPLAIN | GUC_NOT_IN_SAMPLE};

/// Moves a setting, just defined, out of the group that PostgreSQL has for those of all extensions.
/// Nothing but pg_settings reads the group.
void set_group(const char* name, Kind kind) {
  if (config_generic* const setting = find_setting(name)) setting->group = kind.group;
}

void define_bool(Kind kind, const char* name, const char* purpose, const char* detail,
                 bool* variable) {
  DefineCustomBoolVariable(name, purpose, detail, variable, *variable, kind.who, kind.flags,
                           nullptr, nullptr, nullptr);
  set_group(name, kind);
}

void define_enum(Kind kind, const char* name, const char* purpose, int* variable,
                 const config_enum_entry* values) {
  DefineCustomEnumVariable(name, purpose, nullptr, variable, *variable, values, kind.who,
                           kind.flags, nullptr, nullptr, nullptr);
  set_group(name, kind);
}

void define_int(Kind kind, const char* name, const char* purpose, const char* detail, int* variable,
                int max, GucIntCheckHook check = nullptr, int min = 0) {
  DefineCustomIntVariable(name, purpose, detail, variable, *variable, min, max, kind.who,
                          kind.flags, check, nullptr, nullptr);
  set_group(name, kind);
}

/// What users and administrators have a reason to set for a session.
void define_user_settings() {
  define_bool(
      kMethod, "gpujoin.enable_customscan", "Enables the planner's use of gpujoin's plan node.",
      "It streams gpujoin's functions in FROM, runs joins on a distance or of boxes, counts their "
      "pairs and finds the best of them, and finds the clusters of PostGIS's window functions; "
      "with "
      "it come estimates of how many pairs there are.",
      &enable_customscan);
  define_bool(kMethod, "gpujoin.prefer_node",
              "Has the planner take gpujoin's plan node wherever it serves.",
              "Costs are not compared. It is meant for comparing plans, and for queries whose rows "
              "the planner misjudges.",
              &prefer_node);
  define_enum(kPlanning, "gpujoin.warn_missed",
              "Reports queries that compare many pairs by a distance without gpujoin's plan node.",
              &warn_missed, kMissReports);
  define_enum(kPlanning, "gpujoin.engine", "Engine that runs similarity joins.", &engine, kEngines);
  DefineCustomStringVariable("gpujoin.device", "Devices that joins run on, counted from 0.",
                             "A list of numbers, or \"all\"; gpu_devices() lists them.", &devices,
                             "0", kPlanning.who, kPlanning.flags | GUC_LIST_INPUT, check_devices,
                             assign_devices, nullptr);
  set_group("gpujoin.device", kPlanning);
  define_int(kWorkers, "gpujoin.cpu_threads", "Worker threads of a join.",
             "0 uses as many as the machine or its control group gives.", &cpu_threads,
             kMaxThreads);
  define_int(kMemory, "gpujoin.host_memory_limit",
             "Host memory that a join may hold, its copy of the tables included.",
             "0 allows a quarter of the memory of the machine or its control group.",
             &host_memory_limit, MAX_KILOBYTES);
  define_int(kMemory, "gpujoin.device_memory_limit", "Device memory that a join may hold.",
             "0 sets no limit.", &device_memory_limit, MAX_KILOBYTES);
}

/// What administrators are told.
void define_logging_settings() {
  define_int(
      kLogging, "gpujoin.log_min_duration",
      "Least time of a similarity join that is logged, with what it did.",
      "Reading its tables counts, waiting for who takes its rows does not. 0 logs all joins, "
      "-1 none.",
      &log_min_duration_ms, INT_MAX, nullptr, -1);
}

/// The process that serves all sessions.
void define_service_settings() {
  define_enum(kPlanning, "gpujoin.service",
              "Whether similarity joins run in the service that all sessions share.", &service,
              kServicePreferences);
  define_int(kServiceWorkers, "gpujoin.service_threads",
             "Worker threads of the service, for all joins.",
             "0 uses as many as the machine or its control group gives.", &service_thread_count,
             kMaxServiceThreads);
  define_int(kServiceMemory, "gpujoin.service_join_memory",
             "Host memory that the joins at work in the service may take.",
             "0 allows a quarter of the memory of the machine or its control group. A join that "
             "needs more runs alone.",
             &service_join_memory, MAX_KILOBYTES);
  define_int(kServiceMemory, "gpujoin.table_memory",
             "Host memory in which the service keeps the columns of tables that were joined.",
             "0 keeps none; -1 takes an eighth of the memory of the machine or its control group.",
             &table_memory, MAX_KILOBYTES, nullptr, -1);
  define_int(kServiceMemory, "gpujoin.device_table_memory",
             "Memory of each device in which the service keeps tables and their indexes.",
             "0 keeps none.", &device_table_memory, MAX_KILOBYTES);
}

/// A knob for each technique of the papers, for those who study them.
void define_knobs() {
  define_enum(kKnob, "gpujoin.index", "Index that finds candidate pairs.", &index_method,
              kIndexMethods);
  define_int(kKnob, "gpujoin.indexed_dimensions", "Dimensions that the grid indexes.", "0 chooses.",
             &indexed_dimensions, kMaxGridDimensions);
  define_int(kKnob, "gpujoin.reference_points", "Reference points whose distances are indexed.",
             "0 chooses.", &reference_points, kMaxReferencePoints);
  define_enum(kKnob, "gpujoin.reference_placement", "Where reference points lie.",
              &reference_placement, kReferencePlacements);
  define_enum(kKnob, "gpujoin.reorder_dimensions",
              "Whether the most selective dimensions come first.", &reorder_dimensions, kSwitches);
  define_enum(kKnob, "gpujoin.sort_unindexed",
              "Whether points of a cell are sorted by one more dimension.", &sort_unindexed,
              kSwitches);
  define_enum(kKnob, "gpujoin.short_circuit",
              "Whether a distance ends once it exceeds the threshold.", &short_circuit, kSwitches);
  define_enum(kKnob, "gpujoin.access_pattern", "Which neighboring cells a cell visits.",
              &access_pattern, kAccessPatterns);
  define_enum(kKnob, "gpujoin.cell_order", "Order of the grid's cells in memory.", &cell_order,
              kCellOrders);
  define_enum(kKnob, "gpujoin.work_order", "Order in which a device takes up the points.",
              &work_order, kWorkOrders);
  define_int(kKnob, "gpujoin.threads_per_point", "Threads of a device that share a point.",
             "A power of two; 0 chooses.", &threads_per_point, kMaxThreadsPerPoint,
             check_threads_per_point);
  define_int(kKnob, "gpujoin.streams", "Batches that a device works on at a time.", "0 chooses.",
             &streams, kMaxStreams);
  define_enum(kKnob, "gpujoin.share_devices", "Joins are shared by all of their devices.",
              &share_devices, kSwitches);
  define_int(kKnob, "gpujoin.batch_pairs", "Pairs that an engine hands over at a time.",
             "0 chooses.", &batch_pairs, PG_INT32_MAX);
  define_enum(kKnob, "gpujoin.topk_method", "How a top-k join finds the best pairs.", &topk_method,
              kTopkMethods);
  define_enum(kKnob, "gpujoin.box_method", "How boxes find each other.", &box_method, kBoxMethods);
}

}  // namespace

void define_settings() {
  define_user_settings();
  define_logging_settings();
  define_service_settings();
  define_knobs();
  reserve_settings_prefix("gpujoin");
}

EnginePreference engine_preference() { return static_cast<EnginePreference>(engine); }

DeviceNumbers device_numbers() { return device_list; }

bool customscan_enabled() { return enable_customscan; }

bool prefers_node() { return prefer_node; }

MissReport miss_report() { return static_cast<MissReport>(warn_missed); }

ServicePreference service_preference() { return static_cast<ServicePreference>(service); }

Knobs knob_settings() {
  Knobs knobs;
  knobs.index = static_cast<IndexMethod>(index_method);
  knobs.indexed_dimensions = static_cast<std::uint32_t>(indexed_dimensions);
  knobs.reference_points = static_cast<std::uint32_t>(reference_points);
  knobs.reference_placement = static_cast<ReferencePlacement>(reference_placement);
  knobs.reorder_dimensions = static_cast<Switch>(reorder_dimensions);
  knobs.sort_unindexed = static_cast<Switch>(sort_unindexed);
  knobs.short_circuit = static_cast<Switch>(short_circuit);
  knobs.access_pattern = static_cast<AccessPattern>(access_pattern);
  knobs.cell_order = static_cast<CellOrder>(cell_order);
  knobs.work_order = static_cast<WorkOrder>(work_order);
  knobs.threads_per_point = static_cast<std::uint32_t>(threads_per_point);
  knobs.streams = static_cast<std::uint32_t>(streams);
  knobs.share_devices = static_cast<Switch>(share_devices);
  knobs.batch_pairs = static_cast<std::uint64_t>(batch_pairs);
  knobs.topk_method = static_cast<TopkMethod>(topk_method);
  knobs.box_method = static_cast<BoxMethod>(box_method);
  return knobs;
}

std::uint32_t thread_limit() {
  if (cpu_threads > 0) return static_cast<std::uint32_t>(cpu_threads);
  const int given = machine_threads();
  return static_cast<std::uint32_t>(given < kMaxThreads ? given : kMaxThreads);
}

std::uint64_t host_memory_limit_bytes() {
  if (host_memory_limit > 0) return static_cast<std::uint64_t>(host_memory_limit) * 1024;
  return machine_memory_bytes() / 4;
}

std::uint64_t device_memory_limit_bytes() {
  return static_cast<std::uint64_t>(device_memory_limit) * 1024;
}

double log_min_duration() {
  return log_min_duration_ms < 0 ? INFINITY : static_cast<double>(log_min_duration_ms);
}

std::uint32_t service_threads() {
  return static_cast<std::uint32_t>(service_thread_count > 0 ? service_thread_count
                                                             : machine_threads());
}

std::uint64_t service_join_memory_bytes() {
  if (service_join_memory > 0) return static_cast<std::uint64_t>(service_join_memory) * 1024;
  return machine_memory_bytes() / 4;
}

std::uint64_t table_memory_bytes() {
  if (table_memory >= 0) return static_cast<std::uint64_t>(table_memory) * 1024;
  return machine_memory_bytes() / 8;
}

std::uint64_t device_table_memory_bytes() {
  return static_cast<std::uint64_t>(device_table_memory) * 1024;
}

}  // namespace gpujoin
