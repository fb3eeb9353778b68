# Everything works from a fresh clone with only Python 3.11+ and make: the first target that needs
# it builds a virtual environment with the exact versions that were tested.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: serve screenshots site dist installs recorded paper bench-smoke bench-speed bench-spot bench-report docs demo test test-slow check format bench-core bench-scale bench-accuracy bench-search bench-ask bench-batches bench-answers bench-minutes bench-learned bench-level bench-preferential bench-peers bench-noise bench-strangers bench-checks bench-calibration bench-crowd bench-raters bench-items bench-web bench-candidates bench-gpu clean

demo: $(READY)  ## a whole optimization by simulated duels; picture in out/
	$(RUN) examples/demo.py

serve: $(READY)  ## the server, with the studies of STUDIES="a.toml b.toml"; without any, choose flowers
	$(VENV)/bin/askwise serve $(or $(STUDIES),--demo)

screenshots: $(READY)  ## the pictures of docs/web.md and docs/web-experimenter.md, by the browser /usr/bin/chromium
	$(RUN) docs/screenshots.py
	$(RUN) docs/screenshots_experimenter.py

test: $(READY)  ## the fast suite
	$(RUN) -m pytest -n auto

test-slow: $(READY)  ## everything, with types checked at every call, and coverage
	$(RUN) -m pytest -n auto -m "" --jaxtyping-packages=askwise,beartype.beartype --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

check: $(READY)  ## lint, types, layers
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench-core: $(READY)  ## speed and memory, compared with BoTorch and scikit-learn
	$(RUN) benchmarks/core.py

bench-scale: $(READY)  ## a question after hundreds and thousands of duels: time, memory, accuracy; a few minutes
	$(RUN) benchmarks/scale.py

docs: $(READY)  ## the page of rules, the notebooks and the figures, from the code
	$(RUN) docs/build.py
	$(RUN) docs/pictures.py
	$(RUN) docs/tools/notebooks.py

site: $(READY)  ## the documentation as a site in out/site; warnings are errors, links are checked
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	$(RUN) docs/tools/check.py out/site
	@echo "The site is in out/site. To read it: $(RUN) -m http.server 8080 --directory out/site"

dist: $(READY)  ## wheel, source distribution and list of components in dist/, the same bytes from the same commit
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[release]"
	$(RUN) release/dist.py

installs: dist  ## the wheel with each extra by itself, then with the oldest versions of what it needs: minutes, or an hour on a slow connection
	$(RUN) release/installs.py
	$(RUN) release/installs.py --lowest

recorded: $(READY)  ## studies of every kind, recorded by this release for the tests of later ones, in tests/data
	$(RUN) release/record.py

bench-accuracy: $(READY)  ## EP and Laplace, compared with long Monte Carlo
	$(RUN) benchmarks/accuracy.py

bench-search: $(READY)  ## time per search, compared with BoTorch's optimizer
	OPENBLAS_NUM_THREADS=1 $(RUN) benchmarks/search.py speed

bench-ask: $(READY)  ## CPU time per step
	$(RUN) benchmarks/ask.py

bench-batches: $(READY)  ## batches of 4, 9 and 25: distinct members and regret
	$(RUN) benchmarks/batches.py

bench-answers: $(READY)  ## batches answered by a winner or a ranking, and rules that know which; `python benchmarks/people.py` simulates
	$(RUN) benchmarks/answers.py

bench-minutes: $(READY)  ## duels, the best, the worst or a ranking of four, by minutes of a person's time; from the same simulations
	$(RUN) benchmarks/minutes.py

bench-learned: $(READY)  ## regret with learned and with known kernels
	$(RUN) benchmarks/learned.py

bench-level: $(READY)  ## level sets: share of the space on the wrong side, by rule; six minutes of one core
	$(RUN) benchmarks/level.py

bench-preferential: $(READY)  ## duels, compared with Optuna-dashboard's sampler: time per query, and regret
	$(RUN) benchmarks/preferential.py

bench-peers: $(READY)  ## whole searches, beside BoTorch's EUBO and Optuna-dashboard: an hour of one core
	$(RUN) benchmarks/peers.py

bench-noise: $(READY)  ## averaged and learned kernels, and every rule, at three levels of noise; from the committed results
	$(RUN) benchmarks/noise.py

bench-strangers: $(READY)  ## duels about ten functions of no list: hours on a few cores, minutes on a large GPU
	$(RUN) benchmarks/strangers.py --workers $$(nproc)

bench-checks: $(READY)  ## checks of the answers: good people flagged, careless ones found
	$(RUN) benchmarks/checks.py

bench-calibration: $(READY)  ## what studies say against what is true: minutes on 16 cores, an hour on one
	$(RUN) benchmarks/calibration.py run --workers $$(nproc)
	$(RUN) benchmarks/calibration.py page

bench-crowd: $(READY)  ## many programs on one study: answers of each, and the slowest question
	$(RUN) benchmarks/crowd.py

bench-raters: $(READY)  ## people who differ, lapse and disagree, simulated and real: hours on a few cores
	$(RUN) benchmarks/raters.py
	$(RUN) benchmarks/raters_real.py

bench-items: $(READY)  ## duels about the items of real tables, or about a box around them: regret
	$(RUN) benchmarks/items.py

bench-web: $(READY)  ## the server under load, and killed under load: about 25 minutes
	$(RUN) benchmarks/web.py

bench-smoke: $(READY)  ## a small campaign: run, rank, report
	$(VENV)/bin/askwise bench run pbo --functions forrester,ursem_waves --rules muc,dueling_ucb,random --replicates 5 --iterations 15 --workers 2 --out out/bench-smoke/pbo
	$(VENV)/bin/askwise bench rank out/bench-smoke/pbo
	$(VENV)/bin/askwise bench report out/bench-smoke/pbo --out out/bench-smoke/report

bench-speed: $(READY)  ## rates of every rule on this machine, and the time of the paper's experiments
	$(RUN) benchmarks/campaign_speed.py

bench-spot: $(READY)  ## recompute some of the committed results and compare
	$(RUN) benchmarks/spot.py

paper: $(READY)  ## all experiments in full, then the report: hours on a few cores, minutes on a large GPU
	$(RUN) benchmarks/paper.py --workers $$(nproc)
	$(MAKE) bench-report

bench-report: $(READY)  ## the report from the committed results
	$(VENV)/bin/askwise bench report $(sort $(dir $(wildcard results/*/about.json))) --out docs/bench --findings docs/bench/findings.md

bench-candidates: $(READY)  ## rules on trial for duels at three levels of noise: hours on a few cores, minutes on a large GPU
	$(RUN) benchmarks/candidates.py --workers $$(nproc)

bench-gpu: $(READY)  ## many lanes on a GPU, compared with the CPU
	$(RUN) benchmarks/gpu.py

# torch first and alone: so that pip takes this version's build and resolves nothing else for it
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
