"""The contracts list exactly the chapter's columns."""

import polars as pl
import pytest

from brokerlab.archive import contracts
from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS
from brokerlab.errors import SchemaError

CHAPTER = {
    "jobs": """
        pandaid jeditaskid jobsetid jobdefinitionid parentid attemptnr maxattempt jobstatus
        jobsubstatus vo prodsourcelabel processingtype workinggroup countrygroup produsername
        gshare workqueue_id resource_type currentpriority assignedpriority computingsite nucleus
        cloud transformation container_name cmtconfig cpu_architecture_level eventservice
        specialhandling relocationflag lockedby schedulerid creationtime modificationtime
        statechangetime starttime endtime activatedtime corecount actualcorecount meancorecount
        cpuconsumptiontime cpuconsumptionunit hs06 hs06sec maxpss avgpss maxrss avgrss maxvmem
        memory_leak memory_leak_x2 totrbytes totwbytes raterbytes ratewbytes diskio nevents
        ninputdatafiles inputfilebytes noutputdatafiles outputfilebytes jobmetrics pilottiming
        maxcpucount maxwalltime minramcount maxdiskcount modificationhost transexitcode
        piloterrorcode exeerrorcode superrorcode ddmerrorcode brokerageerrorcode
        jobdispatchererrorcode taskbuffererrorcode gco2_regional gco2_global
    """,
    "tasks": """
        jeditaskid reqid parent_tid taskname vo prodsourcelabel tasktype processingtype
        requesttype campaign workinggroup gshare workqueue_id username origusername status
        oldstatus superstatus errordialog taskpriority currentpriority cloud site nucleus
        corecount mergecorecount resource_type ramcount ramunit baseramcount mergeramcount
        mergeramunit outdiskcount outdiskunit workdiskcount workdiskunit cputime cputimeunit
        cpuefficiency basewalltime walltime walltimeunit mergewalltime mergewalltimeunit
        iointensity iointensityunit diskio diskiounit memory_leak_core memory_leak_x2
        orig_cputime orig_cputimeunit orig_ramcount orig_mergeramcount splitrule architecture
        transuses transhome transpath container_name eventservice usejumbo goal attemptnr
        ttcrequested ttcpredicted creationdate modificationtime starttime endtime frozentime
        statechangetime activatedtime queuedtime t_done_jobs usescout scoutsuccessrate
        nfilesperjob neventsperjob ngbperjob nmaxfilesperjob tgtmaxoutputforng mincpuefficiency
        uselocalio allowinputlan allowinputwan mergeoutput maxcorecount maxwalltime t1weight
        inputprestaging ipconnectivity ipstack avoidvp allowincompleteinds limitedsites
        dynamicnumevents neventsperinput maxeventsperjob usejobcloning nesconsumers
        maxattemptesjob njumbojobs fullchain onlytagsforfc nsitesperjob useexhausted
        disableautofinish messagedriven
    """,
    "datasets": """
        jeditaskid datasetid datasetname containername type masterid status state nfiles
        nfilestobeused nfilesused nfilesfinished nfilesfailed nfilesmissing nevents
        neventstobeused neventsused attributes storagetoken destination creationtime
        modificationtime
    """,
    "files": """
        jeditaskid datasetid fileid pandaid lfn scope type status fsize nevents startevent
        endevent attemptnr maxattempt failedattempt maxfailure ramcount boundaryid lumiblocknr
    """,
    "jobs_files": """
        pandaid type dataset lfn fsize status
    """,
    "queues": """
        panda_queue unified_name is_unified atlas_site role pandasite_state tier cloud region
        type resource_type_q status corecount corepower memory maxrss minrss maxtime mintime
        maxwdir maxinputsize direct_access_lan direct_access_wan maxdiskio max_io_intensity
        pledgedcpu transferringlimit fairsharepolicy wnconnectivity jobseed capability workflow
        catchall releases is_cvmfs transtimehi transtimelo params last_update ts
    """,
    "resource_types": """
        resource_name mincore maxcore minrampercore maxrampercore
    """,
    "software_tags": """
        panda_queue data
    """,
    "ddm_endpoints": """
        ddm_endpoint_name site_name type is_tape space_total space_free space_used space_expired
        space_min_free space_unavailable space_timestamp blacklisted blacklisted_read
        blacklisted_write read_lan write_lan read_wan write_wan delete ts
    """,
    "queue_endpoints": """
        panda_queue ddm_endpoint_name direction scope order_read order_write is_default is_local
    """,
    "queue_storage_site": """
        panda_queue site_name
    """,
    "replicas": """
        datasetname ddm_endpoint_name found total bytes is_tape vp readable_lan readable_wan ts
    """,
    "file_locations": """
        datasetname lfn panda_queue kind
    """,
    "network_matrix": """
        src dst key value ts
    """,
    "transfers": """
        src_site dst_site window from_date to_date interval_min bytes_xs files_xs errors_xs
    """,
    "job_stats": """
        ts vo computingsite gshare workqueue_id resource_type nucleus jobstatus njobs
        maxpriority prorated_diskio_avg prorated_mem_avg hs
    """,
    "job_counts": """
        cur_date computingsite cloud vo prodsourcelabel processingtype workinggroup countrygroup
        jobstatus resource_type workqueue_id currentpriority relocationflag num_of_jobs
        num_of_cores
    """,
    "site_data": """
        site flag hours getjob updatejob nojob getjobabs updatejobabs nstart finished failed
        defined assigned waiting activated holding running transferring laststart lastmod ts
    """,
    "workers": """
        harvesterid workerid batchid computingsite resourcetype jobtype status ncore njobs
        minramcount submittime starttime endtime lastupdate pilotstarttime pilotendtime
        pilotstatus nodeid errorcode nativestatus diagmessage
    """,
    "worker_stats": """
        harvester_id computingsite resourcetype jobtype status n_workers lastupdate ts
    """,
    "slots": """
        pandaqueuename gshare resourcetype numslots modificationtime expirationtime ts
    """,
    "metrics": """
        computingsite gshare metric value_json timestamp ts
    """,
    "task_evaluation": """
        jeditaskid metric value_json timestamp ts
    """,
    "job_status_log": """
        pandaid jobstatus modificationtime computingsite prodsourcelabel
    """,
    "task_status_log": """
        jeditaskid status modificationtime attemptnr reason
    """,
    "task_attempts": """
        jeditaskid attemptnr starttime endtime startstatus endstatus
    """,
    "worker_nodes": """
        site host_name cpu_model cpu_model_normalized n_logical_cpus threads_per_core
        cpu_architecture cpu_architecture_level total_memory total_local_disk last_seen
    """,
    "worker_node_gpu": """
        panda_queue vendor model architecture vram framework_version driver_version
    """,
    "worker_node_cpu_level": """
        panda_queue cpu_architecture_level pct_within_queue
    """,
    "cpu_benchmarks": """
        cpu_type_normalized smt_enabled ncores site score_per_core timestamp source
    """,
    "gshares": """
        name value parent vo prodsourcelabel workinggroup campaign processingtype transpath
        rtype queue_id throttled
    """,
    "gdpconfig": """
        app component key value value_json type vo descr valid_from valid_to
    """,
    "expected_scouts": """
        jeditaskid ts cputime cputimeunit ramcount ramunit outdiskcount outdiskunit
        workdiskcount workdiskunit iointensity iointensityunit diskio diskiounit walltime
        walltimeunit memory_leak_core memory_leak_x2 ngbperjob mergeramcount mergeramunit
        mergewalltime mergewalltimeunit
    """,
}
"""Columns of archive.md, in its order; ``ts`` where a heading says "[, ts]" or "(ts)".

``worker_node_*`` are of matching.md 1; ``transfers`` of no chapter (DDM dashboard).
"""


def test_the_tables_are_those_of_the_chapter():
    assert list(contracts.TABLES) == list(CHAPTER)


@pytest.mark.parametrize("table", CHAPTER)
def test_the_columns_are_those_of_the_chapter(table):
    assert list(contracts.TABLES[table].columns()) == CHAPTER[table].split()


@pytest.mark.parametrize("table", contracts.STORED)
def test_every_column_says_unit_null_and_meaning(table):
    for name, column in contracts.contract(table).columns().items():
        meta = column.metadata
        assert meta["unit"], name
        assert meta["meaning"], name
        assert (meta["null"] == "not allowed") == (not column.nullable), name


@pytest.mark.parametrize("table", contracts.TABLES)
def test_every_table_has_a_key_and_the_fully_required_ones_are_primary(table):
    keys = contracts.key_columns(table)
    assert keys
    primary = contracts.contract(table).primary_key()
    assert primary in ([], keys)


@pytest.mark.parametrize(
    ("table", "column", "kind", "unit"),
    [
        ("jobs", "maxpss", pl.Int64, "kB"),
        ("jobs", "raterbytes", pl.Int64, "B/s"),
        ("jobs", "hs06sec", pl.Int64, "HS06 s"),
        ("jobs", "minramcount", pl.Int64, "MB"),
        ("jobs", "attemptnr", pl.Int32, "-"),
        ("jobs", "endtime", pl.Datetime("us"), "UTC"),
        ("tasks", "orig_cputime", pl.Float64, "by orig_cputimeunit"),
        ("tasks", "goal", pl.Int32, "per mille"),
        ("files", "fsize", pl.Int64, "B"),
        ("queues", "corepower", pl.Float64, "HS06/core"),
        ("queues", "is_cvmfs", pl.Boolean, "-"),
        ("ddm_endpoints", "space_free", pl.Float64, "GB"),
        ("workers", "minramcount", pl.Int64, "MB"),
    ],
)
def test_types_and_units(table, column, kind, unit):
    found = contracts.contract(table).columns()[column]
    assert found.dtype == kind
    assert found.metadata["unit"] == unit


@pytest.mark.parametrize(
    ("table", "required"),
    [
        ("jobs", "pandaid jobstatus prodsourcelabel creationtime modificationtime"),
        ("tasks", "jeditaskid vo prodsourcelabel status creationdate modificationtime"),
        ("datasets", "jeditaskid datasetid type"),
        ("files", "jeditaskid datasetid fileid type status"),
        ("queues", "panda_queue type status"),
        ("network_matrix", "src dst key ts"),
        ("gshares", "name value"),
        ("gdpconfig", "app component key type"),
    ],
)
def test_required_columns(table, required):
    columns = contracts.contract(table).columns()
    assert [name for name, column in columns.items() if not column.nullable] == required.split()


def test_every_resolved_parameter_has_a_tag_of_its_own():
    assert len(SPLIT_RULE_TAGS) == 34
    assert len(set(SPLIT_RULE_TAGS.values())) == 34
    assert SPLIT_RULE_TAGS["usescout"] == "US"


def test_an_unknown_table_names_the_nearest():
    with pytest.raises(SchemaError, match=r"unknown table 'job': did you mean 'jobs'\?"):
        contracts.describe("job")
