# Everything happens in .venv, which the first target that needs it makes.
#   make          set up .venv
#   make bot      train, export and measure a small bot
#   make test     run the tests          (make test PYTEST_ARGS="-q tests/test_melds.py")
#   make check    lint, format, types
#   make clean    remove .venv, caches and build folders; runs/ and bots/ stay

PYTHON ?= python3
# A process for each core, up to four: more do not pay, since each of them loads torch. Whoever is done takes from the others.
PYTEST_ARGS ?= -q -n auto --maxprocesses 4 --dist worksteal

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := setup
.PHONY: setup bot test check clean

setup: $(READY)
	@echo "Ready. Next:"
	@echo "  make test                     run the tests"
	@echo "  make bot                      train, export and measure a small bot"
	@echo "  $(BIN)/ginrummy --help     every command"

# Set up once, and again when what is to be installed changed. --upgrade-deps is left out: it asks for the newest pip,
# which is one more download that nothing here needs.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || { \
	    echo "error: gin-env needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo 'not there'); name another: make PYTHON=/path/to/python3.11" >&2; \
	    exit 1; }
	@test -x $(BIN)/pip || { echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing gin-env and its tools into $(VENV) (once; some minutes, most of them for torch)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[train,onnx,plots,dev]"
	@touch $@

bot: $(READY)
	$(BIN)/ginrummy train ppo --recipe quick --run runs/quick
	$(BIN)/ginrummy export runs/quick --out bots/quick
	$(BIN)/ginrummy match bots/quick random --deals 5000
	$(BIN)/ginrummy match bots/quick greedy --deals 5000
	@echo "The bot is exported: its bundle lies in bots/quick."

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
