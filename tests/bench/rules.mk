# One answer whatever the threads, the batch and the tier; see check_digest.c.
$(B)/tests/check_digest: $(call obj,tests/bench/check_digest.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-digest
check-digest: $(B)/tests/check_digest ## one digest of logits on every tier, thread count and batch [MODEL=FILE ARGS="--only q4_k"]
	$(RUN) $(B)/tests/check_digest $(if $(MODEL),,--golden tests/golden/logits/digests.txt) $(ARGS) $(MODEL)

# Synthetic models (tests/support/mkmodel.h), by hand or by the name of the file, whose parts are the options:
# make build/models/qwen3moe-30b-a3b+Q4_K_M+layers-8+vocab-8192.gguf
$(B)/tests/mkmodel: $(call obj,tests/bench/mkmodel.c $(format_src) $(common_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: mkmodel
mkmodel: $(B)/tests/mkmodel ## a synthetic model [ARGS="--preset qwen3-0.6b --type Q4_K_M OUT.gguf"]
	$(B)/tests/mkmodel $(or $(ARGS),--list)

.PRECIOUS: $(B)/models/%.gguf
$(B)/models/%.gguf: | $(B)/tests/mkmodel
	@mkdir -p $(@D)
	$(B)/tests/mkmodel --preset $(word 1,$(subst +, ,$*)) --type $(word 2,$(subst +, ,$*)) \
	    $(addprefix --,$(subst -,=,$(wordlist 3,9,$(subst +, ,$*)))) $@.part && mv $@.part $@

$(B)/tests/shares: $(call obj,tests/bench/shares.c tests/kernels/machine.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

# Hit rates of expert traces through the daemon's policy; see replay.c.
$(B)/tests/replay: $(call obj,tests/bench/replay.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: replay
replay: $(B)/tests/replay ## hit rates of traces, recorded or invented, by cache size [ARGS="--slots 122,559 FILE|u|l|d"]
	$(B)/tests/replay $(ARGS)

# The reader against the drive; see read_drive.c.
$(B)/tests/read_drive: $(call obj,tests/bench/read_drive.c $(lib_src))
	$(call link,$^)

.PHONY: read-drive
read-drive: $(B)/tests/read_drive ## what the drive and the reader give [MODEL=FILE ARGS="--slice BYTES --pool"]
	$(B)/tests/read_drive $(ARGS) $(MODEL)

# Kernels, shares of the machine and whole models; tests/bench/bench.py tells more.
# RIVAL=path/to/llama-bench OUT=bench.json CSV=bench.csv ONLY=regex ROUNDS=5 DEEP_ROUNDS=1 THREADS=2
.PHONY: bench
bench: all $(B)/tests/check_kernels $(B)/tests/shares $(B)/tests/mkmodel ## kernels, shares, models [RIVAL=llama-bench OUT=FILE ONLY=regex ROUNDS=5]
	python3 tests/bench/bench.py --build $(B) --make '$(MAKE)' --threads $(or $(THREADS),2) --rounds $(or $(ROUNDS),5) \
	    --deep-rounds $(or $(DEEP_ROUNDS),1) $(if $(ONLY),--only '$(ONLY)') $(if $(RIVAL),--rival '$(RIVAL)') \
	    $(if $(OUT),--out '$(OUT)') $(if $(CSV),--csv '$(CSV)') $(ARGS)

# What each format's arithmetic does to the logits; tests/bench/accuracy.py tells more.
$(B)/tests/accuracy: $(call obj,tests/bench/accuracy.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: accuracy
accuracy: $(B)/tests/accuracy ## each format's logits against f32 ones [RIVAL=llama-server ONLY=regex]
	python3 tests/bench/accuracy.py --accuracy $(B)/tests/accuracy $(if $(RIVAL),--rival '$(RIVAL)') $(if $(ONLY),--only '$(ONLY)')

# Owned slots against a map with WILLNEED; see stream_race.c.
$(B)/tests/stream_race: $(call obj,tests/bench/stream_race.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

# A token with everything resident beside the same ops without the program; see bypass.c.
$(B)/tests/bypass: $(call obj,tests/bench/bypass.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

# Resident weights in owned memory beside a map of the file; see resident_race.c.
$(B)/tests/resident_race: $(call obj,tests/bench/resident_race.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

# The gates of streaming; tests/bench/gates.py tells more.
# GATE='name …' RIVAL=path/to/llama-completion MODELS_DIR=DIR MOE=FILE DENSE=FILE SMALL=FILE LARGE=FILE ROUNDS=3 OUT=gates.json
.PHONY: gates
gates: all $(addprefix $(B)/tests/,mkmodel stream_race check_stream bypass replay read_drive unit_memory unit_model unit_engine) ## the gates of streaming [GATE=name RIVAL=llama-completion MODELS_DIR=DIR OUT=gates.json]
	PYTHONDONTWRITEBYTECODE=1 tests/bench/gates.py --build $(B) $(addprefix --gate ,$(GATE)) $(if $(RIVAL),--rival $(RIVAL)) \
	    $(if $(MODELS_DIR),--models $(MODELS_DIR)) $(foreach m,MOE DENSE SMALL LARGE,$(if $($m),--use $m=$($m))) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(OUT),--out $(OUT))

# Plans against what happens; tests/bench/plan_check.py tells more.
.PHONY: check-plan
check-plan: all $(B)/tests/mkmodel ## what plan says against bytes and speeds of runs [MODELS='FILE …' ROUNDS=3 OUT=plan.json]
	PYTHONDONTWRITEBYTECODE=1 tests/bench/plan_check.py --build $(B) $(addprefix --models ,$(MODELS)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(OUT),--out $(OUT))

# Curves against caches of other sizes; tests/bench/curve_check.py tells more.
.PHONY: check-curve
check-curve: all $(B)/tests/mkmodel $(B)/tests/replay ## what the curve says other caches hit, against such caches [MODEL=FILE OUT=curve.json]
	PYTHONDONTWRITEBYTECODE=1 tests/bench/curve_check.py --build $(B) $(if $(MODEL),--model $(MODEL)) $(if $(OUT),--out $(OUT))

# A token takes nothing from the heap and no lock; see check_quiet.c.
$(B)/tests/check_quiet: $(call obj,tests/bench/check_quiet.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-quiet
check-quiet: $(B)/tests/check_quiet ## decode allocates and locks nothing
	$(RUN) $(B)/tests/check_quiet $(ARGS)
