"""What replayed decisions say of a period: frames of shares with intervals over tasks (or users), without words.

`period` replays an archive's brokerages, asks it for the jobs that ran, and names what differs between the job brokerages. Each question has a module. Of every brokerage: `removal` (what each check removes), `history` (do jobs run
where the replay would send them, and which tasks of production are left without a queue), `key_effects` (which keys
matter), `rule_sets` (document against production). Of production: `weight_spread` (what the weights are made of), `nuclei`
(the choice of the nucleus). Of users: `users` (whose each brokerage is and how it went), `throttle`, `loops` (locality and the
Analysis Stabilizer), `basic_weights`, `fairness`. `tasks` asks all but the second pair in one call.

Everywhere ``decisions`` are those of the brokerage that the module is about, ``rows`` (of user tasks) the frame of `users.outcomes`,
and ``**dice`` are ``n_boot`` and ``seed`` of :func:`brokerlab.intervals.shares`; replicates are over tasks, of user tasks over users
where a function does not say otherwise.
"""
