"""Contracts of ``jobs``, ``jobs_files``, ``datasets`` and ``files`` (archive.md sections 1, 3 and 4)."""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, i32, i64, resource_type, text, ts

STATUSES = (
    "pending", "defined", "waiting", "assigned", "throttled", "activated", "sent", "starting", "running",
    "stagein", "stageout", "holding", "merging", "transferring", "finished", "failed", "cancelled", "closed",
)  # fmt: skip
"""Statuses of jobs; a job with another one is in none of the counts by outcome."""
NOT_ACTIVATED = ("pending", "defined", "assigned", "waiting")
"""Statuses of jobs that the system keeps, and counts, in a table of their own until they are activated (DB ``JOBSDEFINED4``)."""
ENDED = ("finished", "failed")
"""Statuses of jobs that did what they could; jobs that were cancelled or closed did not."""
OVER = (*ENDED, "cancelled", "closed")
"""Statuses after which nothing happens."""

APPROXIMATE = "approximate"
"""Extra boolean column of ``datasets`` and ``files``: true for stand-ins (section 13.4), null for real rows."""
TYPES = ("input", "pseudo_input", "pp_input", "trn_log", "trn_output", "lib", "output", "log")
"""Types of datasets and files, beside ``tmpl_*``."""
FILE_STATUSES = ("ready", "picked", "running", "finished", "failed", "cancelled", "missing", "lost", "staging", "pending")  # fmt: skip
"""Statuses of files."""


class Jobs(dy.Schema):
    """One row per job, live or archived (DB ``JOBSARCHIVED4``, ``JOBSARCHIVED``, live tables)."""

    pandaid = i64("job", key=True, low=0)
    jeditaskid = i64("task", null="job outside JEDI")
    jobsetid = i64("group of jobs (event service, analysis)", null="no job set")
    jobdefinitionid = i64("used by timeouts")
    parentid = i64("job this one retries", null="first attempt")
    attemptnr = i32("attempts so far", low=0)
    maxattempt = i32("attempts allowed", low=0)
    jobstatus = text(
        "pending, defined, ..., running, ..., finished, failed, closed",
        required=True,
        values=STATUSES,
    )
    jobsubstatus = text("'toreassign' etc.", null="none")
    vo = text("virtual organisation, e.g. atlas")
    prodsourcelabel = text("managed, user, test, ptest, panda (build)...", required=True)
    processingtype = text("'pmerge' marks merge jobs, 'urgent' express")
    workinggroup = text("working group", null="none")
    countrygroup = text("country group", null="none")
    produsername = text("name of the user (cleaned)")
    gshare = text("leaf global share")
    workqueue_id = i32("work queue")
    resource_type = resource_type()
    currentpriority = i32("priority now")
    assignedpriority = i32("priority at submission; 901 marks scouts of some tasks")
    computingsite = text("queue", null="not assigned yet")
    nucleus = text("ATLAS site collecting the output", null="none")
    cloud = text("cloud")
    transformation = text("payload; a name containing 'build' marks build jobs")
    container_name = text("container", null="none")
    cmtconfig = text("software platform")
    cpu_architecture_level = text("CPU architecture level of the node")
    eventservice = i32("1 ES, 2 merge, 3 cloning, 4 jumbo, 5 co-jumbo, 6 fine", null="ordinary job")
    specialhandling = text("comma list; sc cloning, sj scout job", null="nothing special")
    relocationflag = i32("forced assignment; 2 and 3 matter in timeouts", null="not forced")
    lockedby = text("'jedi' for jobs of tasks", null="not locked")
    schedulerid = text("'harvester-...'", null="unknown scheduler")
    creationtime = ts("inserted", required=True)
    modificationtime = ts("last change", required=True, version=True)
    statechangetime = ts("last change of status")
    starttime = ts("running on the node", null="not started or not recorded")
    endtime = ts("end on the node", null="not ended or not recorded", after="starttime")
    activatedtime = ts("first 'activated' in job_status_log", null="no status log")
    corecount = i32("cores requested", "cores", low=0, null="see scouts.md 3.1; 0 likewise")
    actualcorecount = i32("cores used, by the pilot", "cores", low=0)
    meancorecount = f64("average cores used", "cores", low=0)
    cpuconsumptiontime = i64("CPU time, all cores", "s", low=0)
    cpuconsumptionunit = text("'s+<CPU model>'")
    hs06 = i64("cores x core power, at dispatch", "HS06", low=0)
    hs06sec = i64("wall time x core power x cores, at most 999999999", "HS06 s", low=0)
    maxpss = i64("largest PSS, whole job", "kB", low=0, null="not measured; 0 likewise")
    avgpss = i64("average PSS, whole job", "kB", low=0, null="not measured")
    maxrss = i64("largest RSS, whole job", "kB", low=0, null="not measured")
    avgrss = i64("average RSS, whole job", "kB", low=0, null="not measured")
    maxvmem = i64("largest virtual memory, whole job", "kB", low=0, null="not measured")
    memory_leak = i64("fitted slope", "kB/s", null="not fitted", aliases=("memoryleak",))
    memory_leak_x2 = f64("quality of the fit", null="not fitted", aliases=("memoryleakx2",))
    totrbytes = i64("read from local storage", "kB", low=0)
    totwbytes = i64("written to local storage", "kB", low=0)
    raterbytes = i64("read rate", "B/s", low=0)
    ratewbytes = i64("write rate", "B/s", low=0)
    diskio = i64("expected by the task: a requirement, not a measurement", "kB/s", low=0)
    nevents = i64("events processed", "events", low=0, null="no event information")
    ninputdatafiles = i32("input files", "files", low=0)
    inputfilebytes = i64("all input files, secondary included", "B", low=0)
    noutputdatafiles = i32("output files", "files", low=0)
    outputfilebytes = i64("all outputs", "B", low=0)
    jobmetrics = text("blank-separated key=value: coreCount, workDirSize (B), vmPeakMax (kB)...")
    pilottiming = text("getjob|stagein|payload|stageout|setup", "s")
    maxcpucount = i64("limit of CPU time given to the job", "s", low=0, null="no limit; 0 too")
    maxwalltime = i64("limit of wall time given to the job", "s", low=0, null="no limit; 0 too")
    minramcount = i64("memory requirement, whole job", "MB", low=0, null="none; 0 likewise")
    maxdiskcount = i64("disk requirement", "MB", low=0, null="none; 0 likewise")
    modificationhost = text("worker node, slot@host")
    transexitcode = text("exit code of the payload")
    piloterrorcode = i32("pilot error", null="no error; 0 likewise")
    exeerrorcode = i32("payload error", null="no error; 0 likewise")
    superrorcode = i32("supervisor error", null="no error; 0 likewise")
    ddmerrorcode = i32("data management error", null="no error; 0 likewise")
    brokerageerrorcode = i32("brokerage error", null="no error; 0 likewise")
    jobdispatchererrorcode = i32("dispatcher error", null="no error; 0 likewise")
    taskbuffererrorcode = i32("task buffer error", null="no error; 0 likewise")
    gco2_regional = f64("carbon, regional mix", "g", low=0)
    gco2_global = f64("carbon, global mix", "g", low=0)


class JobsFiles(dy.Schema):
    """Files of a job; optional (DB ``FILESTABLE4``)."""

    pandaid = i64("job", loose_key=True, required=True, low=0)
    type = text("input, output, log...", loose_key=True, required=True, values=TYPES)
    dataset = text("dataset", loose_key=True, null="no dataset")
    lfn = text("logical file name", loose_key=True)
    fsize = i64("size", "B", low=0, null="pseudo input; 0 likewise")
    status = text("status of the file for this job")


class Datasets(dy.Schema):
    """Datasets of tasks (DB ``JEDI_DATASETS``)."""

    jeditaskid = i64("task", key=True, low=0)
    datasetid = i64("dataset", key=True)
    datasetname = text("name")
    containername = text("container")
    type = text("input, pseudo_input, lib, output, log, tmpl_*...", required=True, values=TYPES)
    masterid = i64("dataset this one follows", null="primary dataset")
    status = text("status")
    state = text("open or closed")
    nfiles = i64("files", "files", low=0)
    nfilestobeused = i64("files to be used", "files", low=0)
    nfilesused = i64("files used", "files", low=0)
    nfilesfinished = i64("files finished", "files", low=0)
    nfilesfailed = i64("files failed", "files", low=0)
    nfilesmissing = i64("files missing", "files", low=0)
    nevents = i64("events", "events", low=0, null="no event information")
    neventstobeused = i64("events to be used", "events", low=0)
    neventsused = i64("events used", "events", low=0)
    attributes = text("attributes", null="none")
    storagetoken = text("storage token", null="none")
    destination = text("where outputs go", null="none")
    creationtime = ts("inserted")
    modificationtime = ts("last change", version=True)


class Files(dy.Schema):
    """Files of datasets of tasks (DB ``JEDI_DATASET_CONTENTS``)."""

    jeditaskid = i64("task", loose_key=True, required=True, low=0)
    datasetid = i64("dataset", loose_key=True, required=True)
    fileid = i64("file", loose_key=True, required=True)
    pandaid = i64("last job that used it", null="not used yet")
    lfn = text("logical file name")
    scope = text("scope")
    type = text("as datasets.type", required=True, values=TYPES)
    status = text(
        "ready, picked, running, finished, failed, ...", required=True, values=FILE_STATUSES
    )
    fsize = i64("size", "B", low=0, null="pseudo input; 0 likewise")
    nevents = i64("events", "events", low=0, null="no event information")
    startevent = i64("first event used", null="whole file")
    endevent = i64("last event used, inclusive", null="whole file")
    attemptnr = i32("attempt", loose_key=True, low=0)
    maxattempt = i32("attempts allowed", low=0)
    failedattempt = i32("failed attempts", low=0)
    maxfailure = i32("failures allowed", low=0)
    ramcount = i64("requirement raised after memory failures", "MB", low=0, null="not raised")
    boundaryid = i64("grouping", null="no grouping")
    lumiblocknr = i64("grouping by luminosity block", null="no grouping")
