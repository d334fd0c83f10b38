"""Contracts of ``datasets`` and ``files`` (archive.md sections 3 and 4)."""

import dataframely as dy

from brokerlab.archive.contracts._columns import i32, i64, text, ts

APPROXIMATE = "approximate"
"""Extra boolean column of both tables: true for stand-ins (section 13.4), null for real rows."""
TYPES = ("input", "pseudo_input", "pp_input", "trn_log", "trn_output", "lib", "output", "log")
"""Types of datasets and files, beside ``tmpl_*``."""
STATUSES = ("ready", "picked", "running", "finished", "failed", "cancelled", "missing", "lost", "staging", "pending")  # fmt: skip
"""Statuses of files."""


class Datasets(dy.Schema):
    """Datasets of tasks (DB ``JEDI_DATASETS``)."""

    jeditaskid = i64("task", key=True, low=0, aliases=("taskid",))
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

    jeditaskid = i64("task", loose_key=True, required=True, low=0, aliases=("taskid",))
    datasetid = i64("dataset", loose_key=True, required=True)
    fileid = i64("file", loose_key=True, required=True)
    pandaid = i64("last job that used it", null="not used yet", aliases=("jobid",))
    lfn = text("logical file name")
    scope = text("scope")
    type = text("as datasets.type", required=True, values=TYPES)
    status = text("ready, picked, running, finished, failed, ...", required=True, values=STATUSES)
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
