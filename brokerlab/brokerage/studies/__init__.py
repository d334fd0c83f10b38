"""What replayed decisions say of a period: frames of shares with intervals over tasks (or users), without words.

`period` replays an archive's brokerages, asks it for the jobs that ran, and names what differs between the job brokerages.
Each question has a module. Of every brokerage: `removal` (what each check removes, do jobs run where the replay would send
them, and which tasks of production are left without a queue), `alternatives` (which keys matter, document against
production). Of production: `weights` (what they are made of). Of users: `users` (whose each brokerage is and how it went, who is
held back, locality and the Analysis Stabilizer, fairness), `weights` (the two basic ones). `tasks` asks them in one call, of
production with the choice of the nucleus, of users but for keys and rule sets.

Everywhere ``decisions`` are those of the brokerage that the module is about, ``rows`` (of user tasks) the frame of `users.outcomes`,
and ``**dice`` are ``n_boot`` and ``seed`` of :func:`brokerlab.intervals.shares`; replicates are over tasks, of user tasks over users
where a function does not say otherwise.
"""
