# Completion of koine's command line for fish: koine completion fish | source

function __koine_complete
    set -l found (command koine complete --shell fish -- (commandline -cp) 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end

complete -c koine -f -a '(__koine_complete)'
