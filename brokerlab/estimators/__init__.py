"""How much work needs: memory of the next job, allocated so that waste and kills cost least.

``sizing`` holds the rules that systems deploy, the published methods and our estimator under one
interface (predict, be scored, see the truth), and the harness that runs them in one table.
"""
