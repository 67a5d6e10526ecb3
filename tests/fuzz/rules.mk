# Fuzz programs: one for each tests/fuzz/fuzz_NAME.c, see fuzz.h.  They are
# built by clang with coverage, AddressSanitizer and UBSan, in $(B)/fuzz: make
# calls itself with another compiler and the one tier that needs no processor.

FUZZ_CC    ?= $(or $(shell command -v clang-14 || command -v clang),clang)
FUZZ_RUNS  ?= 20000
FUZZ_TIME  ?= 60
fuzz_names := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
fuzz_rooms  = $(shell sed -n 's,^/\* room: *\(.*[^ ]\) *\*/$$,\1,p' tests/fuzz/fuzz_$(1).c)
fuzz_dirs   = $(foreach r,$(fuzz_rooms),$(shell awk -v ROOM=$(r) -f tests/lint/closure.awk tests/lint/rooms))
fuzz_src    = $(filter-out %/main.c,$(sort $(foreach d,$(fuzz_dirs),$(call dir_src,$(d)))))

# -O1 keeps stacks readable; a finding of UBSan must end the program, or libFuzzer goes on.  clang 14 does not know
# every name that gcc's __builtin_cpu_supports() does.
fuzz_make  = $(MAKE) --no-print-directory B=$(B)/fuzz CC='$(FUZZ_CC)' TIERS=scalar WARN= FLAGS_scalar= \
             OPT='-O1 -g -fno-omit-frame-pointer' \
             SAN='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined' \
             CFLAGS="$(CFLAGS) '-D__builtin_cpu_supports(name)=0'"

define fuzz_rule
$(B)/fuzz_$(1): $(call obj,tests/fuzz/fuzz_$(1).c $(fuzz_src)) $(if $(shell grep -l "tests/support/" tests/fuzz/fuzz_$(1).c),$(B)/libsupport.a)
	@$$(if $$(Q),echo "  LINK  $$@",:)
	$$(Q)$$(CC) -fsanitize=fuzzer,address,undefined -pthread -o $$@ $$^ $$(LIBS)
endef
$(foreach n,$(fuzz_names),$(eval $(call fuzz_rule,$(n))))

.PHONY: fuzz fuzz-smoke
# A program that does not build is one failure of the run and does not stop the others.
fuzz-smoke: ## every fuzz program, FUZZ_RUNS runs over its seeds [T=name]
	+@$(fuzz_make) -k $(patsubst %,$(B)/fuzz/fuzz_%,$(or $(T),$(fuzz_names))) || :
	@tests/fuzz/run.sh $(B)/fuzz "-runs=$(FUZZ_RUNS) -seed=1" $(or $(T),$(fuzz_names))

fuzz: ## one fuzz program for FUZZ_TIME seconds, from a new start each time: T=name
	@$(if $(T),:,echo 'fuzz: name one of: $(fuzz_names), as T=name'; exit 1)
	+@$(fuzz_make) $(B)/fuzz/fuzz_$(T)
	@tests/fuzz/run.sh $(B)/fuzz "-max_total_time=$(FUZZ_TIME)" $(T)
