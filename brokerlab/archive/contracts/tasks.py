"""Contract of ``tasks`` and ``expected_scouts`` (archive.md sections 2 and 11)."""

import re

import dataframely as dy
import polars as pl

from brokerlab.archive.contracts._columns import about, f64, i32, i64, resource_type, text, ts

_ABSENT = "rule absent"
STATUSES = (
    "registered", "defined", "assigning", "ready", "pending", "scouting", "scouted", "running", "throttled", "prepared", "passed",
    "done", "finished", "failed", "broken", "aborting", "aborted", "finishing", "tobroken", "toretry", "toincexec", "rerefine",
    "exhausted", "paused", "staging", "staged", "merging", "topreprocess", "preprocessing",
)  # fmt: skip
"""Statuses of tasks."""


class Tasks(dy.Schema):
    """One row per task (DB ``JEDI_TASKS``), resolved task parameters included."""

    jeditaskid = i64("task", key=True, low=0)
    reqid = i64("request")
    parent_tid = i64("parent task; itself if none")
    taskname = text("name")
    vo = text("virtual organisation", required=True)
    prodsourcelabel = text("managed, user, test...", required=True)
    tasktype = text("prod, anal")
    processingtype = text("processing type")
    requesttype = text("request type")
    campaign = text("campaign")
    workinggroup = text("working group", null="none")
    gshare = text("leaf global share")
    workqueue_id = i32("work queue")
    username = text("owner; equals jobs.produsername")
    origusername = text("owner before cleaning")
    status = text("status", required=True, values=STATUSES)
    oldstatus = text("status before", null="none")
    superstatus = text("overall status")
    errordialog = text("reason of the status", null="none given")
    taskpriority = i32("priority at submission")
    currentpriority = i32("priority now")
    cloud = text("cloud")
    site = text("queue asked for", null="any")
    nucleus = text("ATLAS site collecting the output", null="none yet")
    corecount = i32("cores of its jobs; 0 = may vary", "cores", low=0)
    mergecorecount = i32("cores of merge jobs", "cores", low=0)
    resource_type = resource_type()
    ramcount = i64("memory, by ramunit", "MB", null="not set")
    ramunit = text("MB, MBPerCore, MBPerCoreFixed", null="MB", aliases=("ramcountunit",))
    baseramcount = i64("memory offset not scaling with cores", "MB", null="0")
    mergeramcount = i64("memory of merge jobs", "MB", null="not set")
    mergeramunit = text("unit of mergeramcount", null="MB")
    outdiskcount = i64("output per event or per MB of input", "by outdiskunit", low=0)
    outdiskunit = text("kB, MB, GB + PerEvent, + Fixed", null="per MB of input")
    workdiskcount = i64("work space, whole job", "MB", low=0, null="not set")
    workdiskunit = text("unit of workdiskcount", null="MB")
    cputime = i64("HS06 s per event", "by cputimeunit", low=0, null="not set")
    cputimeunit = text("HS06sPerEvent, mHS06sPerEvent, each + Fixed", null="not set")
    cpuefficiency = i32("CPU efficiency; 0 = no scaling with events", "%", low=0, null="scouts S02")
    basewalltime = i64("start and end of a job, not scaling with events", "s", low=0, null="0")
    walltime = i64("per MB of input", "s/MB", null="not set")
    walltimeunit = text("kSI2kseconds; 'ava' = forced avalanche", null="scout data to be (re)made")
    mergewalltime = i64("per MB of input, merge jobs", "s/MB", null="not set")
    mergewalltimeunit = text("unit of mergewalltime", null="not set")
    iointensity = i64("traffic over the network", "kB/s", low=0, null="not set")
    iointensityunit = text("kBPerS", null="not set")
    diskio = i64("local disk traffic", "kB/s", low=0, null="not set")
    diskiounit = text("kBPerS", null="not set")
    memory_leak_core = i64("memory leak", "kB/s per core", null="not fitted")
    memory_leak_x2 = f64("quality of the fit", null="not fitted")
    orig_cputime = f64("cputime as submitted", "by orig_cputimeunit", null="not requested")
    orig_cputimeunit = text("unit of cputime as submitted", null="HS06sPerEvent")
    orig_ramcount = i64("ramcount as submitted", "MB", null="not requested")
    orig_mergeramcount = i64("mergeramcount as submitted", "MB", null="not requested")
    splitrule = text("XX=value,...", null="no rules")
    architecture = text("hardware and platform asked for", null="any")
    transuses = text("software release", null="none")
    transhome = text("software home", null="none")
    transpath = text("payload", null="none")
    container_name = text("container", null="none")
    eventservice = i32("0 ordinary, 1 ES, 2 cloning", null="ordinary task")
    usejumbo = text("one letter", null="no jumbo jobs")
    goal = i32("completion goal; 10 x the requested per cent", "per mille", low=0)
    attemptnr = i32("attempts", low=0)
    ttcrequested = ts("requested time of completion", null="not requested")
    ttcpredicted = ts("predicted time of completion", null="not predicted")
    creationdate = ts("inserted", required=True)
    modificationtime = ts("last change", required=True, version=True)
    starttime = ts("first job started", null="not started")
    endtime = ts("ended", null="not ended", after="starttime")
    frozentime = ts("no progress since", null="progressing")
    statechangetime = ts("last change of status")
    activatedtime = ts("activated", null="not yet")
    queuedtime = ts("queued", null="not yet")
    t_done_jobs = i64("finished non-merge jobs", "jobs", low=0)
    usescout = i64("scouts: 1 none, 2 to be used, 3 used [US]", null=_ABSENT)
    scoutsuccessrate = i64("needed success of scouts [SS]", "tenths", null=_ABSENT)
    nfilesperjob = i64("files per job [NF]", "files", null=_ABSENT)
    neventsperjob = i64("events per job [NE]", "events", null=_ABSENT)
    ngbperjob = i64("size per job [NG]", "GB", null=_ABSENT)
    nmaxfilesperjob = i64("most files per job [MF]", "files", null=_ABSENT)
    tgtmaxoutputforng = i64("target size of the largest output [TN]", "GB", null=_ABSENT)
    mincpuefficiency = i64("least CPU efficiency [MC]", "%", null=_ABSENT)
    uselocalio = i64("forced copy to scratch, non-zero = yes [LI]", null=_ABSENT)
    allowinputlan = i64("input over LAN: 1 use, 2 only [IL]", null=_ABSENT)
    allowinputwan = i64("input over WAN: 1 use, 2 only [IW]", null=_ABSENT)
    mergeoutput = i64("merge the outputs [MO]", null=_ABSENT)
    maxcorecount = i64("most cores [CC]", "cores", null=_ABSENT)
    maxwalltime = i64("most wall time [MW]", "s", null=_ABSENT)
    t1weight = i64("weight of tier 1 [TW]", null=_ABSENT)
    inputprestaging = i64("input is pre-staged [IS]", null=_ABSENT)
    ipconnectivity = i64("IP connectivity [IP]", null=_ABSENT)
    ipstack = i64("IP stack [IK]", null=_ABSENT)
    avoidvp = i64("avoid virtual placement [AV]", null=_ABSENT)
    allowincompleteinds = i64("incomplete input allowed [AI]", null=_ABSENT)
    limitedsites = i64("sites are limited [LS]", null=_ABSENT)
    dynamicnumevents = i64("dynamic number of events [DY]", "events", null=_ABSENT)
    neventsperinput = i64("events per input file [EI]", "events", null=_ABSENT)
    maxeventsperjob = i64("most events per job [MX]", "events", null=_ABSENT)
    usejobcloning = i64("job cloning [UC]", null=_ABSENT)
    nesconsumers = i64("event service consumers [EC]", "jobs", null=_ABSENT)
    maxattemptesjob = i64("attempts of an event service job [XJ]", null=_ABSENT)
    njumbojobs = i64("jumbo jobs [NJ]", "jobs", null=_ABSENT)
    fullchain = i64("full chain [FU]", null=_ABSENT)
    onlytagsforfc = i64("only tags for full chain [OT]", null=_ABSENT)
    nsitesperjob = i64("sites per job [NS]", "sites", null=_ABSENT)
    useexhausted = i64("task may become exhausted [UX]", null=_ABSENT)
    disableautofinish = i64("no automatic finish [DF]", null=_ABSENT)
    messagedriven = i64("message driven [MD]", null=_ABSENT)


class ExpectedScouts(dy.Schema):
    """Recorded scout results of production, for comparison; optional."""

    jeditaskid = i64("task", key=True, low=0)
    ts = ts("when the values were written", key=True)
    cputime = i64("written cputime", "by cputimeunit", null="not written")
    cputimeunit = text("written unit", null="not written")
    ramcount = i64("written memory", "MB", null="not written")
    ramunit = text("written unit", null="not written")
    outdiskcount = i64("written output", "by outdiskunit", null="not written")
    outdiskunit = text("written unit", null="not written")
    workdiskcount = i64("written work space", "MB", null="not written")
    workdiskunit = text("written unit", null="not written")
    iointensity = i64("written network traffic", "kB/s", null="not written")
    iointensityunit = text("written unit", null="not written")
    diskio = i64("written disk traffic", "kB/s", null="not written")
    diskiounit = text("written unit", null="not written")
    walltime = i64("written wall time", "s/MB", null="not written")
    walltimeunit = text("written unit", null="not written")
    memory_leak_core = i64("written leak per core", "kB/s", null="not written")
    memory_leak_x2 = f64("written quality of the fit", null="not written")
    ngbperjob = i64("written size per job (newNG)", "GB", null="not written")
    mergeramcount = i64("written memory of merge jobs", "MB", null="not written")
    mergeramunit = text("written unit", null="not written")
    mergewalltime = i64("written wall time of merge jobs", "s/MB", null="not written")
    mergewalltimeunit = text("written unit", null="not written")


SPLIT_RULE_TAGS: dict[str, str] = {
    name: found[1]
    for name, column in Tasks.columns().items()
    if (found := re.search(r"\[([A-Z]{2})\]$", about(column)["meaning"]))
}
"""Tag in ``splitrule`` of each resolved task parameter, e.g. ``nfilesperjob: NF``."""


INT64_DIGITS = 18
"""Every number of so few digits fits 64 bits, in Python and in a column alike."""


def split_rule_pattern(tag: str) -> str:
    """Return the regular expression of one tag's number, valid and linear in Python and in Rust.

    The first match is the one that counts. ``TW`` alone may be negative.

    Source:
        archive.md section 2; scouts.md section 15.
    """
    sign = "-?" if tag == "TW" else ""
    return rf"(?:^|,)\s*{tag}=({sign}[0-9]+)"


def split_rule_digits(rule: pl.Expr, tag: str) -> pl.Expr:
    """Return one tag's number as text; null if absent, or too long for 64 bits."""
    digits = rule.str.extract(split_rule_pattern(tag), 1)
    return pl.when(digits.str.strip_chars_start("-").str.len_bytes() <= INT64_DIGITS).then(digits)
