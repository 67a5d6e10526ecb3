# Fuzz programs: one for each tests/fuzz/fuzz_NAME.c, see fuzz.h.  Built by
# clang with coverage, AddressSanitizer and UBSan in $(B)/fuzz.

FUZZ_CC    ?= $(or $(shell command -v clang-14 || command -v clang),clang)
FUZZ_RUNS  ?= 20000
FUZZ_TIME  ?= 60
fuzz_names := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
fuzz_rooms  = $(shell sed -n 's,^/\* room: *\(.*[^ ]\) *\*/$$,\1,p' tests/fuzz/fuzz_$(1).c)
fuzz_dirs   = $(foreach r,$(fuzz_rooms),$(shell awk -v ROOM=$(r) -f tests/lint/closure.awk tests/lint/rooms))
fuzz_src    = $(filter-out %/main.c,$(sort $(foreach d,$(fuzz_dirs),$(call dir_src,$(d)))))
fuzz_objs   = $(patsubst %.c,$(B)/fuzz/%.o,$(1))

# -O1 keeps stacks readable; a finding of UBSan must end the program, or libFuzzer goes on.
$(B)/fuzz/%.o: WARN :=
$(B)/fuzz/%.o: OPT := -O1 -g -fno-omit-frame-pointer
$(B)/fuzz/%.o: SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
$(B)/fuzz/%.o: %.c tests/fuzz/rules.mk Makefile | $(gen)
	@mkdir -p $(@D)
	@$(if $(Q),echo "  FUZZ  $<",:)
	$(Q)$(FUZZ_CC) $(ALL_CFLAGS) -DLOG_ROOM='"$(notdir $(<D))"' $(FLAGS_$(notdir $(<D))) -MMD -MP -c -o $@ $<

define fuzz_rule
$(B)/fuzz/fuzz_$(1): $(call fuzz_objs,tests/fuzz/fuzz_$(1).c $(fuzz_src))
	@$$(if $$(Q),echo "  LINK  $$@",:)
	$$(Q)$$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -pthread -o $$@ $$^ $$(LIBS)
-include $(patsubst %.o,%.d,$(call fuzz_objs,tests/fuzz/fuzz_$(1).c $(fuzz_src)))
endef
$(foreach n,$(fuzz_names),$(eval $(call fuzz_rule,$(n))))

.PHONY: fuzz fuzz-smoke
# A program that does not build is one failure of the run and does not stop the others.
fuzz-smoke: ## every fuzz program, FUZZ_RUNS runs over its seeds [T=name]
	@$(MAKE) --no-print-directory -k $(patsubst %,$(B)/fuzz/fuzz_%,$(or $(T),$(fuzz_names))) || :
	@tests/fuzz/run.sh $(B)/fuzz "-runs=$(FUZZ_RUNS) -seed=1" $(or $(T),$(fuzz_names))

fuzz: $(patsubst %,$(B)/fuzz/fuzz_%,$(T)) ## one fuzz program for FUZZ_TIME seconds, from a new start each time: T=name
	@$(if $(T),:,echo 'fuzz: name one of: $(fuzz_names), as T=name'; exit 1)
	@tests/fuzz/run.sh $(B)/fuzz "-max_total_time=$(FUZZ_TIME)" $(T)
