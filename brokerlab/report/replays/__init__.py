"""What the reports of replayed brokerages share: sums with intervals, funnels, settings and rule sets tried.

`shares` divides sums with intervals over tasks or users, `cells` writes them; `kinds` names what differs between the
brokerages; `removal` sums up what checks remove, `settings` tries keys, `rulesets` the other rule set and its switches,
`history` compares with where jobs ran, which `period` asks of the archive; `words`, `tables` and `pictures` show these,
`odd` keeps what is said of odd input.
"""
