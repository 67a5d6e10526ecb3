# `make lint`: what a reader would have to check by eye.  Each part prints its
# findings, or one line that it has none; all parts run, also after a finding.

LINT_DIRS  := $(wildcard common backends daemon client tests)
LINT_PARTS := rooms headers format length shell man tables analyzer cppcheck tidy
TIDY       ?= clang-tidy-14
FORMAT     ?= clang-format-14
lint_h     := $(sort $(shell find $(LINT_DIRS) -name '*.h'))
lint_c     := $(sort $(shell find $(LINT_DIRS) -name '*.c'))
# Kernels of another processor do not compile here; form and length hold for them too.
foreign    := $(addsuffix /%,$(addprefix backends/cpu/,$(filter-out $(TIERS),avx2 avx512 neon dotprod i8mm)))
lint_h_own := $(filter-out $(foreign),$(lint_h))
lint_c_own := $(filter-out $(foreign),$(lint_c))
# Reads outside files or lines from outside: these also pass the slower analyzer of gcc.
lint_hostile = $(sort $(wildcard daemon/gguf/*.c daemon/template/*.c) $(wildcard common/rpc.c common/ini.c))
# Flags of the folder, as the build gives them.  clang 14 does not know every name that gcc's builtin does.
lint_flags = $(filter-out -M%,$(ALL_CFLAGS)) -DLOG_ROOM='"lint"' -DTEST_ROOM='"lint"' -DTEST_LIST='"gen/tcases.def"' \
             $(FLAGS_$(notdir $(patsubst %/,%,$(dir $(1)))))
lint_clang = $(call lint_flags,$(1)) '-D__builtin_cpu_supports(name)=0'

.PHONY: lint $(LINT_PARTS:%=lint-%) format
lint: ## every check of form and law: lint-rooms, lint-headers, ... alone
	@failed=; for part in $(LINT_PARTS); do \
	    $(MAKE) --no-print-directory -k lint-$$part || failed="$$failed $$part"; \
	done; \
	[ -z "$$failed" ] && echo 'lint: ok' || { echo "lint: findings in$$failed"; exit 1; }

format: ## clang-format every .c and .h
	@$(FORMAT) -i $(lint_c) $(lint_h)

lint-rooms:
	@grep -rn --include='*.[ch]' '^#include "' $(LINT_DIRS) | awk -v ROOMS=tests/lint/rooms -f tests/lint/rooms.awk
	@echo 'lint-rooms: ok'

lint-headers: $(lint_h_own:%=$(B)/lint/headers/%.ok)
	@echo 'lint-headers: ok'

# The file that includes it is empty, so a header that needs another one says so here.
$(B)/lint/headers/%.ok: % Makefile | $(gen)
	@mkdir -p $(@D)
	@echo '#include "$<"' | $(CC) $(call lint_flags,$<) -Werror -Wno-unused -MMD -MP -MT $@ -MF $(@:.ok=.d) -fsyntax-only -x c -
	@touch $@

lint-format:
	@if command -v $(FORMAT) >/dev/null; then \
	    $(FORMAT) --dry-run -Werror --ferror-limit=3 $(lint_c) $(lint_h) && echo 'lint-format: ok'; \
	else echo 'lint-format: skipped, $(FORMAT) is not installed'; fi

lint-length:
	@wc -l $(lint_c) $(lint_h) | awk '$$2 != "total" && $$1 > 900 { print $$2 ": " $$1 " lines; split it below 900"; bad = 1 } END { exit bad }'
	@echo 'lint-length: ok'

lint-shell:
	@if command -v shellcheck >/dev/null; then \
	    shellcheck -x -P SCRIPTDIR -S warning $(sort $(shell find $(LINT_DIRS) -name '*.sh') $(wildcard .ci/run)) && \
	    for f in $(wildcard client/*.bash); do shellcheck -s bash -S warning $$f || exit 1; done && echo 'lint-shell: ok'; \
	else echo 'lint-shell: skipped, shellcheck is not installed'; fi

lint-man:
	@if ! command -v mandoc >/dev/null; then echo 'lint-man: skipped, mandoc is not installed'; \
	else for f in $(wildcard client/*.1 config/*.5 daemon/*.8); do mandoc -Tlint -Wwarning $$f || exit 1; done; \
	    echo 'lint-man: ok'; fi

lint-tables:
	@tests/lint/tables.sh .
	@echo 'lint-tables: ok'

# Words of C and gcc that it does not know: without them it follows paths that cannot be.
cppcheck_knows := '-D_Noreturn=__attribute__((noreturn))' '-D__builtin_mul_overflow(a,b,r)=((*(r)=(a)*(b)),0)' \
                  '-D__builtin_add_overflow(a,b,r)=((*(r)=(a)+(b)),0)'
lint-cppcheck: | $(gen)
	@mkdir -p $(B)/lint/cppcheck
	@if ! command -v cppcheck >/dev/null; then echo 'lint-cppcheck: skipped, cppcheck is not installed'; \
	else cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability --inline-suppr \
	    --suppressions-list=tests/lint/cppcheck.suppress --cppcheck-build-dir=$(B)/lint/cppcheck --error-exitcode=1 \
	    --template='{file}:{line}: {message} [{id}]' -j 2 -I. -I$(B) -D_GNU_SOURCE -DRNBD_VERSION='""' -DLOG_ROOM='""' \
	    -U__aarch64__ -D__x86_64__ $(cppcheck_knows) $(lint_c_own) && echo 'lint-cppcheck: ok'; fi

lint-analyzer: $(lint_hostile:%=$(B)/lint/analyzer/%.ok)
	@echo 'lint-analyzer: ok'

$(B)/lint/analyzer/%.ok: % Makefile | $(gen)
	@mkdir -p $(@D)
	@$(CC) $(call lint_flags,$<) -O2 -fanalyzer -Werror -MMD -MP -MT $@ -MF $(@:.ok=.d) -c -o /dev/null $<
	@touch $@

# Kept per file, since one takes seconds: a file is looked at again when it, a header of it or the rules change.
# Kernels of vector tiers are straight lines of intrinsics that check-kernels holds to the scalar twin's bits; their headers alone take it
# three seconds a file.
lint_c_tidy := $(filter-out backends/cpu/avx2/% backends/cpu/avx512/%,$(lint_c_own))
lint-tidy: $(if $(shell command -v $(TIDY)),$(lint_c_tidy:%=$(B)/lint/tidy/%.ok))
	@$(if $(shell command -v $(TIDY)),echo 'lint-tidy: ok',echo 'lint-tidy: skipped, $(TIDY) is not installed')

tidy_rules := .clang-tidy $(wildcard */.clang-tidy)
$(B)/lint/tidy/%.ok: % $(tidy_rules) | $(gen)
	@mkdir -p $(@D)
	@$(TIDY) --quiet $< -- $(call lint_clang,$<) 2>$@.err || { cat $@.err; exit 1; }
	@$(CC) $(call lint_flags,$<) -MM -MP -MT $@ -MF $(@:.ok=.d) $< && rm -f $@.err && touch $@

ifneq ($(filter lint lint-%,$(MAKECMDGOALS)),)
-include $(lint_h_own:%=$(B)/lint/headers/%.d) $(lint_hostile:%=$(B)/lint/analyzer/%.d) $(lint_c_own:%=$(B)/lint/tidy/%.d)
endif
