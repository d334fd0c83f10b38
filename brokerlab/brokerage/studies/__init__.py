"""What replayed decisions say of a period: frames of shares with intervals over tasks (or users), without words.

`period` replays an archive's brokerages and asks it for the jobs that ran; `kinds` names what differs between the job
brokerages. Each question has a module: `removal` (what each check removes), `history` (do jobs run where the replay
would send them), `weight_spread` (what the weights are made of), `key_effects` (which keys matter), `rule_sets`
(document against production), `nuclei` (the choice of the nucleus), `stranded` (tasks left without a queue);
`production` asks all but two of production tasks in one call, `user_tasks` of the analysis brokerage (throttle, loops, stabilizer, basic
weights, fairness).
"""
