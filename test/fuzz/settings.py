"""Random settings: gpujoin's knobs, and those of the planner."""
from schema import READER
from tree import Items

KNOBS = {
    'index': ['grid', 'reference_points', 'tiles', 'none', 'pigeonhole'], 'indexed_dimensions': ['1', '2', '4', '6'],
    'reference_points': ['1', '3', '16'], 'reference_placement': ['outer', 'inner'],
    'reorder_dimensions': ['on', 'off'], 'sort_unindexed': ['on', 'off'], 'short_circuit': ['on', 'off'],
    'access_pattern': ['full', 'linear_id', 'unicomp'], 'cell_order': ['linear', 'zorder', 'hilbert'],
    'work_order': ['none', 'sorted', 'queue'], 'threads_per_point': ['1', '8', '32'], 'streams': ['1', '3'],
    'batch_pairs': ['1', '3', '64', '1000'], 'topk_method': ['threshold', 'heap', 'sort'],
    'box_method': ['layered_grid', 'sort_sweep', 'none'], 'service': ['on', 'on', 'off'], 'cpu_threads': ['1', '2', '5'],
    'host_memory_limit': ["'64kB'", "'200kB'", "'1MB'", "'20MB'"], 'device_memory_limit': ["'1MB'", "'4MB'"]}
PLANNER = ["work_mem = '64kB'", 'enable_seqscan = off', 'enable_hashagg = off', 'enable_sort = off', 'geqo_threshold = 2',
           'enable_partitionwise_join = on', 'enable_partitionwise_aggregate = on', 'join_collapse_limit = 1',
           'enable_material = off', 'enable_memoize = off', 'enable_indexscan = off', 'cursor_tuple_fraction = 1']
PARALLEL = ['parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
            'max_parallel_workers_per_gather = 2']
READING = ['min_parallel_table_scan_size = 0', 'parallel_setup_cost = 0']  # tables are read by blocks, with workers or alone


def random_settings(rng, forms, limits=None, searches=False):
    """SET statements; without the ordinary joins the node is what is left. `limits`, in kB, are those under which the query goes in parts; `searches`: it is one that the costs of small tables would not have searched."""
    settings = []
    if rng.random() < 0.88:
        settings.append('enable_nestloop = off')
        settings += [f'enable_{join} = off' for join in ('hashjoin', 'mergejoin') if rng.random() < 0.8]
    if rng.random() < 0.4:
        settings += [f'gpujoin.{knob} = {rng.choice(KNOBS[knob])}' for knob in rng.sample(sorted(KNOBS), rng.randint(1, 3))]
    if rng.random() < 0.2:  # tables stay there, however small they are
        settings.append('gpujoin.service = on')
    if rng.random() < (0.85 if searches else 0.1):
        settings.append('gpujoin.prefer_node = on')
    if rng.random() < (0.4 if limits else 0.1):  # points go to a file, and are joined in parts
        settings.append(f"gpujoin.host_memory_limit = '{rng.choice(limits or [12, 12, 20, 30])}kB'")
    if rng.random() < 0.25:
        settings += rng.sample(PLANNER, rng.randint(1, 2))
    if rng.random() < 0.3:
        settings += ["work_mem = '64kB'", f'hash_mem_multiplier = {rng.choice([1, 1, 2])}']
    if rng.random() < 0.06:
        settings += PARALLEL
    if rng.random() < 0.25:
        settings += [*READING, f'max_parallel_workers_per_gather = {rng.choice([0, 1, 2, 3])}']
        if rng.random() < 0.2:
            settings.append(rng.choice(['parallel_leader_participation = off', 'max_parallel_workers = 1']))
    if rng.random() < 0.01:
        settings += ['jit = on', 'jit_above_cost = 0']
    settings = [f'SET {setting};\n' for setting in settings]
    if rng.random() < (0.5 if 'rls' in forms else 0.05):
        settings.append(f'SET ROLE {READER};\n')
    return Items(settings, '')
